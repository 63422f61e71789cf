"""The examples of docs/check-ins.md: the wrapper is run as cron runs it, the rest is read."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from shared.api_callers import read_callers
from shared.job import Cron, RunsElsewhere, hours, minutes
from shared.load import load_jobs
from tests.integration.trigger.test_api import opened
from tests.support.outside import described, new_key

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = (ROOT / "docs" / "check-ins.md").read_text(encoding="utf-8")
KEY = new_key()
REPORT = RunsElsewhere(
    "legacy-report", Cron("0 2 * * *"), start_within=minutes(10), finish_within=hours(1), heard_within=hours(20)
)
CALLERS = described("old-machine", ["legacy-report"], KEY, may="check_ins")
pytestmark = pytest.mark.timeout(120)


@cache
def blocks(language: str) -> list[str]:
    """Give the document's code blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)


def wrapped(folder: Path, port: int, key: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command under the document's wrapper, with an endpoint on a port of this machine."""
    script = folder / "check-in"
    (text,) = blocks("sh")
    script.write_text(text)
    return subprocess.run(
        [shutil.which("sh") or "sh", str(script), "legacy-report", *command],
        env={
            "MATINS_KEY": key,
            "MATINS_ENDPOINT": f"http://127.0.0.1:{port}",
            "MATINS_RETRIES": "0",
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not shutil.which("curl") or not shutil.which("openssl"), reason="needs curl and openssl")
@pytest.mark.parametrize(("code", "state"), [(0, "succeeded"), (3, "failed")])
async def test_the_wrapper_reports_how_its_command_ended(
    tmp_path: Path, database_url: str, broker_url: str, prefix: str, code: int, state: str
) -> None:
    async with opened(CALLERS, tmp_path, database_url, broker_url, prefix, job=REPORT) as here:

        def run() -> subprocess.CompletedProcess[str]:
            return wrapped(tmp_path, here.api.port, KEY, "sh", "-c", f"echo the report; exit {code}")

        done = await anyio.to_thread.run_sync(run)
        assert (done.returncode, done.stdout) == (code, "the report\n"), done.stderr
        row: Any = await here.session.fetchrow("select state, reason, run_id from matins.occurrence")
        assert row["state"] == state, done.stderr
        assert row["reason"] == (f"reported by old-machine: exit code {code}" if code else None)
        assert row["run_id"]
        trail = await here.session.fetch("select detail ->> 'event' as event from matins.audit where kind = 'check_in'")
        assert [one["event"] for one in trail] == ["start", "fail" if code else "success"]


@pytest.mark.skipif(not shutil.which("curl") or not shutil.which("openssl"), reason="needs curl and openssl")
async def test_the_wrapper_runs_its_command_whatever_the_endpoint_says(
    tmp_path: Path, database_url: str, broker_url: str, prefix: str
) -> None:
    async with opened(CALLERS, tmp_path, database_url, broker_url, prefix, job=REPORT) as here:

        def run() -> subprocess.CompletedProcess[str]:
            return wrapped(tmp_path, here.api.port, new_key(), "sh", "-c", "echo the report; exit 4")

        done = await anyio.to_thread.run_sync(run)
        assert (done.returncode, done.stdout) == (4, "the report\n")
        assert "check-in: the failure of legacy-report was not reported" in done.stderr
        assert await here.session.fetchval("select state from matins.occurrence") == "expected"


def test_the_callers_of_the_document_can_be_read() -> None:
    (caller,) = read_callers(blocks("toml")[0].replace("whsec_REPLACE", new_key()))
    assert (caller.name, caller.check_ins) == ("old-machine", frozenset({"legacy-report"}))
    assert not caller.jobs


def test_the_declaration_of_the_document_is_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = blocks("python")
    (tmp_path / "documented_check_ins.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    loaded = load_jobs(["documented_check_ins"])
    loaded.refuse_faults()
    assert loaded.jobs["legacy-report"].has_messages is False
