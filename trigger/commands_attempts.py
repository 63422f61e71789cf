"""The command that tells who attempts: for one occurrence, or for a job by process."""

from datetime import timedelta
from typing import Annotated, Any

import typer

from shared import clock
from shared.terminal import print_json, run, settings_for, told
from shared.terminal_tables import Times, print_line, print_table, show_seconds
from trigger.attempts import job_attempts, occurrence_attempts
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import AsJson, Zone
from trigger.reach import reach, read_identity

DAYS = 7


def attempts_command(
    what: Annotated[
        str, typer.Argument(metavar="OCCURRENCE|JOB", help="As invoice-run:2026-08-25T02:00Z; or a job, by process.")
    ],
    *,
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="For a job: how far back to look.")] = DAYS,
    zone: Zone = "UTC",
    as_json: AsJson = False,
) -> None:
    """Tell who attempted an occurrence, when, and who won; or, for a job, attempts and wins of each process.

    With coordination claim every live trigger attempts each instant once; with leader the one that leads; with external
    only who fires it.
    """
    with told(PROGRAM):
        times = Times(zone)
        identity = read_identity(what) if ":" in what else None
        since = clock.utc_now() - timedelta(days=days)
        settings = settings_for("database_url")

        async def look() -> dict[str, Any]:
            async with reach(settings) as session:
                if identity is None:
                    return await job_attempts(session, what, since)
                return await occurrence_attempts(session, identity)

        found = run(look)
        if as_json:
            print_json(found)
        elif identity is None:
            print_tally(found, times)
        else:
            print_attempts(found, times)


def print_attempts(found: dict[str, Any], times: Times) -> None:
    """Print the attempts on one occurrence, as `occurrence_attempts` gives them."""
    told_state = found["state"] + (f" ({found['reason']})" if found["reason"] else "")
    print_line(f"{found['occurrence']}: {told_state}", "bold")
    if found["fired_by"]:
        print_line(f"fired by {found['fired_by']}: {found['fire_reason'] or 'no reason given'}")
    rows = [
        (
            "won" if one["won"] else "",
            one["instance"][:8],
            one["host"],
            one["region"],
            one["version"],
            times.show(one["attempted_at"]),
            show_seconds(one["late_seconds"]),
        )
        for one in found["attempts"]
    ]
    headings = ("", "process", "host", "region", "version", "at", "after due")
    print_table("", headings, rows, empty="nobody has attempted it")


def print_tally(found: dict[str, Any], times: Times) -> None:
    """Print a job's attempts and wins by process, as `job_attempts` gives them."""
    print_line(f"{found['job']}: attempts at what was due since {times.show(found['since'])}", "bold")
    rows = [
        (
            one["instance"][:8],
            one["host"],
            one["region"],
            one["version"],
            one["attempts"],
            one["wins"],
            show_seconds(one["median_late_seconds"]),
            show_seconds(one["most_late_seconds"]),
            times.show(one["last_at"]),
        )
        for one in found["instances"]
    ]
    headings = ("process", "host", "region", "version", "attempts", "wins", "after due", "at most", "last")
    print_table("", headings, rows, empty="nobody has attempted anything")
