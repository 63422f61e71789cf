"""The runbook has an entry for each alert kind, exit code, error in the log and known failure, and no other."""

import ast
import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main

import trigger.command
import worker.command
from schemas.alert import KINDS
from shared.terminal import DONE, FAILED, INTERRUPTED, REFUSED
from tests.architecture.sources import PRODUCT, ROOT, modules

DOCS = ROOT / "docs"
RUNBOOK = (DOCS / "runbook.md").read_text(encoding="utf-8")
PROGRAMS = {
    "trigger": typer.main.get_group(trigger.command.application),
    "worker": typer.main.get_group(worker.command.application),
}
FAILURES = json.loads((ROOT / "tests" / "cases" / "known_failures.json").read_text(encoding="utf-8"))
LABELS = ["Symptom", "Look", "Do", "Costs", "Wake"]
WOKEN = re.compile(
    r"nobody|as (?:its|the|there|see|with)|see there|the on-call engineer, now|the job's owner, in the morning"
    r"|the database's administrator, now"
)
CELL = re.compile(r"(?<!\\)\|")


def section(heading: str) -> str:
    """Give what stands under a heading of the second level."""
    return RUNBOOK.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def entries(heading: str) -> dict[str, str]:
    """Give the entries of a section by their headings."""
    _, *others = re.split(r"^### (.+)$", section(heading), flags=re.MULTILINE)
    return dict(zip(others[::2], others[1::2], strict=True))


def rows(heading: str) -> Iterator[list[str]]:
    """Give the cells of each row of the tables under a heading."""
    for line in section(heading).splitlines():
        if line.startswith("| ") and not line.startswith(("| process", "| code", "| command", "| event")):
            yield [cell.strip() for cell in CELL.split(line)[1:-1]]


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Give each command with its full name."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


ALL = {f"{program} {name}": command for program, group in PROGRAMS.items() for name, command in commands(group)}


def lines_to_run() -> list[str]:
    """Give every command line that the runbook shows."""
    blocks = re.findall(r"```console\n(.*?)```", RUNBOOK, re.DOTALL)
    shown = [line.strip() for block in blocks for line in block.splitlines()]
    spans = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", RUNBOOK, flags=re.DOTALL))
    shown += [" ".join(span.split()) for span in spans if span.startswith("python -m ") and "|" not in span]
    return [line for line in shown if line]


def command_of(words: list[str]) -> tuple[str, list[str]]:
    """Give the longest command's name that words begin with, and its arguments."""
    for length in (2, 1):
        if (name := " ".join(words[:length])) in {one.partition(" ")[2] for one in ALL}:
            return name, words[length:]
    pytest.fail(f"no command: {' '.join(words)}")


@pytest.mark.parametrize("heading", ["Alerts", "How scheduled work fails", "What can go wrong"])
def test_every_entry_says_all_five_things(heading: str) -> None:
    found = entries(heading)
    assert found
    for name, text in found.items():
        assert re.findall(r"^- \*\*(\w+)\*\*: \S", text, re.MULTILINE) == LABELS, name
        assert WOKEN.match(text.partition("- **Wake**: ")[2]), name


def test_every_kind_of_alert_has_its_entry_and_no_other() -> None:
    assert list(entries("Alerts")) == list(KINDS)


@pytest.mark.parametrize(
    ("heading", "known"), [("How scheduled work fails", "failures"), ("What can go wrong", "goes wrong")]
)
def test_every_known_failure_has_its_entry_and_no_other(heading: str, known: str) -> None:
    assert list(entries(heading)) == FAILURES[known]


def test_every_exit_code_of_each_process_has_its_entry() -> None:
    told = [(cells[0].strip("`"), int(cells[1])) for cells in rows("Exit codes") if len(cells) == 7]
    codes = (DONE, FAILED, REFUSED, INTERRUPTED)
    assert told == [(process, code) for process in ("trigger serve", "worker serve") for code in codes]
    general = [int(cells[0]) for cells in rows("Exit codes") if cells[0].isdigit()]
    assert general == [DONE, FAILED, REFUSED, INTERRUPTED]


def test_every_exit_code_of_each_command_has_its_entry_and_no_other() -> None:
    told = {cells[0].strip("`"): cells[1:] for cells in rows("Exit codes") if len(cells) == 6 and cells[0][0] == "`"}
    assert sorted(told) == sorted(ALL)
    for name, cells in told.items():
        assert all(cells), f"{name}: a cell is empty"
        assert WOKEN.match(cells[-1]), name


def logged_errors() -> set[str]:
    """Give the events that the product logs at level error."""
    found = set()
    for _, _, tree in modules(*PRODUCT):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Rereading":
                # A file that cannot be read again is named by what it says.
                what = node.args[0]
                assert isinstance(what, ast.Constant)
                assert isinstance(what.value, str)
                found.add(f"{what.value} cannot be read")
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            logger = node.func.value
            if node.func.attr in {"error", "exception", "critical"} and isinstance(logger, ast.Name):
                event = node.args[0]
                found |= {event.value} if isinstance(event, ast.Constant) and isinstance(event.value, str) else set()
    # Said by a name: the last line of a process, and what the channel `log` writes of what is critical.
    return found | {"service failed", "ended at once", "alert opened", "alert repeated"}


def test_every_error_in_the_log_has_its_entry_and_no_other() -> None:
    told = {}
    for cells in rows("Errors in the log"):
        assert len(cells) == 6, cells
        match = re.fullmatch(r'<a id="log-([a-z-]+)"></a>`([^`]+)`', cells[0])
        assert match, cells[0]
        assert match[1] == re.sub(r"[^a-z]+", "-", match[2].lower()).strip("-")
        assert all(cells), match[2]
        assert WOKEN.match(cells[-1]), match[2]
        told[match[2]] = cells
    missing, surplus = logged_errors() - told.keys(), told.keys() - logged_errors()
    assert (missing, surplus) == (set(), set()), "docs/runbook.md: a row each under 'Errors in the log'"


def test_every_command_line_is_one_that_the_command_line_takes() -> None:
    shown = lines_to_run()
    assert len(shown) > 50
    for line in shown:
        words = shlex.split(line.partition(" | ")[0], comments=True)
        assert words[:2] == ["python", "-m"], line
        name, arguments = command_of(words[3:])
        command = ALL[f"{words[2]} {name}"]
        command.make_context(name, arguments, resilient_parsing=False)


def test_every_option_named_beside_a_command_exists() -> None:
    named = {one.partition(" ")[2]: command for one, command in ALL.items()}
    outside = re.sub(r"```.*?```", "", RUNBOOK, flags=re.DOTALL)
    for span in re.findall(r"`([^`]+)`", outside):
        words = span.split()
        if words[0] not in named or "--" not in span:
            continue
        options = {option for parameter in named[words[0]].params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, span


def test_a_command_that_an_alert_advises_exists() -> None:
    named = {one.partition(" ")[2].split()[0] for one in ALL}
    advised = {word for kind in KINDS.values() for word in re.findall(r"`([a-z-]+)`", kind.advice)}
    assert advised - named == set()


def anchors(text: str) -> set[str]:
    """Give the anchors that a page has: those of its headings, and its own."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


def test_every_link_leads_to_a_page_and_to_an_anchor_of_it() -> None:
    links = re.findall(r"\]\(([^)]*)\)", RUNBOOK)
    assert len(links) > 15
    for link in links:
        page, _, anchor = link.partition("#")
        text = (DOCS / page).read_text(encoding="utf-8") if page else RUNBOOK
        assert not anchor or anchor in anchors(text), link


@pytest.mark.parametrize("kind", KINDS)
def test_every_alert_names_an_anchor_that_exists(kind: str) -> None:
    assert kind in anchors(RUNBOOK)
