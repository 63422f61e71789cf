"""The README says what the code does: its settings, commands, dependencies and links, and its first job."""

import ast
import re
from pathlib import Path

import pytest
import typer.main

import shared.job
import trigger.command
import worker.command
from shared.load import load_jobs
from shared.settings import setting_rows
from shared.terminal import EXIT_CODES

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_settings_is_that_of_the_code() -> None:
    expected = [
        f"| `{variable}` | {f'`{default}`' if default else ''} | {meaning} |"
        for variable, default, meaning in setting_rows()
    ]
    assert [line for line in README.splitlines() if line.startswith("| `MATINS_")] == expected


@pytest.mark.parametrize(
    ("process", "application"),
    [("trigger", trigger.command.application), ("worker", worker.command.application)],
)
def test_the_commands_named_are_those_there_are(process: str, application: typer.Typer) -> None:
    (listed,) = re.findall(rf"`python -m {process}`: ((?:`[a-z-]+`(?:, |\.))+)", README)
    commands = typer.main.get_group(application).commands
    assert set(re.findall(r"`([a-z-]+)`", listed)) == set(commands)


def test_the_exit_codes_are_those_of_the_help() -> None:
    assert EXIT_CODES in " ".join(README.split())


def test_every_dependency_has_its_reason() -> None:
    table = README.partition("## Dependencies, and why")[2].partition("\n## ")[0]
    told = set(
        re.findall(r"[a-z][a-z0-9-]+", " ".join(line.split("|")[1] for line in table.splitlines() if "|" in line))
    )
    wanted = {
        re.split(r"[\[<>=]", line)[0]
        for file in ("runtime.in", "development.in", "benchmark.in")
        for line in (ROOT / "requirements" / file).read_text(encoding="utf-8").splitlines()
        if line and not line.startswith(("#", "-"))
    }
    assert wanted - told == set()


def test_the_schedules_shown_are_schedules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "Instants([" in block)
    (tmp_path / "holidays").mkdir()
    (tmp_path / "holidays" / "berlin.txt").write_text("2026-12-25 Christmas\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    told = [eval(ast.unparse(line), vars(shared.job).copy()).description for line in ast.parse(code).body]  # noqa: S307 - our own README
    assert told == [
        "0 2 * * * UTC",
        "30 8 LW * * Europe/Berlin",
        "every 15m from 2024-01-01T00:05:00Z",
        "2 instants, the last at 2027-04-01T04:30:00Z",
        "0 6 * * * UTC except sat, sun, 2026-12-24 to 2027-01-02, calendar berlin",
    ]


def test_links_lead_somewhere() -> None:
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in target]
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_first_job_is_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "jobs = [" in block)
    (tmp_path / "readme_reports.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    loaded = load_jobs(["readme_reports"])
    assert loaded.faults == ()
    assert set(loaded.jobs) == {"reminders"}
