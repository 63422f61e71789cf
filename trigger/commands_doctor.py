"""The command `doctor`."""

import contextlib
import sys
from dataclasses import asdict

import typer

from shared.terminal import DONE, FAILED, REFUSED, print_json, run, told
from shared.terminal_tables import print_line
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import AsJson
from trigger.doctor_finding import Finding

_CODES = {"ok": DONE, "warn": FAILED, "fail": REFUSED}
_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor_command(*, as_json: AsJson = False) -> None:
    """Examine settings, jobs, both servers and the live processes: a line for each check, with what to do about it.

    Exit code 0: all is ok. 1: there are warnings. 2: something is broken.
    """
    with told(PROGRAM):
        findings = run(_examined)
        worst = max((_CODES[one.level] for one in findings), default=DONE)
        if as_json:
            print_json({"code": worst, "findings": [asdict(one) for one in findings]})
        else:
            for one in findings:
                advice = f" → {one.advice}" if one.advice else ""
                print_line(f"{one.level:<5} {one.check}: {one.found}{advice}".replace("\n", " "), _STYLES[one.level])
        if worst:
            raise typer.Exit(worst)


async def _examined() -> list[Finding]:
    from trigger.doctor import examine  # noqa: PLC0415 - a command loads only what it uses

    with contextlib.redirect_stdout(sys.stderr):
        return [finding async for finding in examine()]
