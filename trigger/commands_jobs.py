"""The commands that look at jobs alone, without any server: jobs, preview."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from shared import clock
from shared.definition import definition_of
from shared.job_faults import duration_text
from shared.schedule import Cron, Fold, Gap
from shared.terminal import FAILED, Refused, print_json, read_instant, say, settings_for, told
from shared.terminal_tables import Times, print_line, print_table
from trigger.commands_deploy import PROGRAM, load_for, refuse_unknown
from trigger.commands_options import AsJson, Zone
from trigger.preview import PreviewRow, preview, rows_as_json

SHOWN_BY_DEFAULT = 10
MOST_SHOWN = 100_000
FARTHEST = timedelta(days=60 * 366)
_BEFORE = timedelta(microseconds=1)


def jobs_command(*, zone: Zone = "UTC", as_json: AsJson = False) -> None:
    """List the jobs that MATINS_JOBS declares, each with its next instant and its decisions.

    Exit code 1 when some are faulty; the sound ones are listed.
    """
    with told(PROGRAM):
        times = Times(zone)
        loaded = load_for(settings_for("jobs"))
        now = clock.utc_now()
        found: list[dict[str, Any]] = [
            {"job": name, "next_at": job.schedule.next_after(now), **definition_of(job)}
            for name, job in sorted(loaded.jobs.items())
        ]
        if as_json:
            print_json({"jobs": found, "faults": [str(fault) for fault in loaded.faults]})
        else:
            headings = ("job", "schedule", "next", "handler", "queue", "decisions", "description")
            print_table("Jobs", headings, [_job_row(one, times) for one in found])
        for fault in loaded.faults:
            say(PROGRAM, str(fault))
        if loaded.faults:
            raise typer.Exit(FAILED)


def preview_command(  # noqa: PLR0913 - each is an option of the command line
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="A declared job; or give --cron.")] = None,
    *,
    cron: Annotated[str | None, typer.Option("--cron", help="Cron text, five fields or a macro.")] = None,
    zone: Annotated[
        str | None, typer.Option("--zone", help="The zone that --cron is meant in; by default UTC.")
    ] = None,
    gap: Annotated[str | None, typer.Option("--gap", help="skip | next_valid | shift, for --zone.")] = None,
    fold: Annotated[str | None, typer.Option("--fold", help="first | second | both, for --zone.")] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="INSTANT", help="The earliest, included; by default now.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="INSTANT", help="The latest, included.")] = None,
    count: Annotated[
        int | None, typer.Option("--count", min=1, max=MOST_SHOWN, help="At most; by default 10, or all with --until.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show when a job, or a cron text, is due, with every clock change explained. Asks no server."""
    with told(PROGRAM):
        schedule = _schedule(job, cron, zone, gap, fold)
        after = (read_instant("--from", since) if since else clock.utc_now()).astimezone(UTC) - _BEFORE
        last = read_instant("--until", until).astimezone(UTC) if until else after + FARTHEST
        if last <= after:
            problem = "--until: lies before --from"
            raise Refused(problem)
        rows = preview(schedule, after, last, count or (MOST_SHOWN if until else SHOWN_BY_DEFAULT))
        if as_json:
            sys.stdout.write(rows_as_json(rows) + "\n")
        else:
            _print_preview(schedule, rows)
        for warning in schedule.warnings():
            say(PROGRAM, f"warning: {warning}")


def _schedule(job: str | None, cron: str | None, zone: str | None, gap: str | None, fold: str | None) -> Cron:
    if (job is None) == (cron is None):
        problem = "give a JOB, or --cron TEXT"
        raise Refused(problem)
    if cron is not None:
        return Cron(cron, zone or "UTC", _policy(gap), _policy(fold))
    if zone or gap or fold:
        problem = "--zone, --gap and --fold belong to --cron: a job declares its own"
        raise Refused(problem)
    return refuse_unknown(str(job), load_for(settings_for("jobs"))).schedule


def _policy(text: str | None) -> Any:
    """Give a policy as it was written: the schedule itself refuses a wrong one."""
    policy: Gap | Fold | str | None = text
    return policy


def _print_preview(schedule: Cron, rows: Sequence[PreviewRow]) -> None:
    print_line(f"{schedule.text} in {schedule.zone}", "bold")
    shown = [(row.scheduled_at or "(no run)", _clock(row.local), row.note) for row in rows]
    print_table("", ("UTC", "local", "note"), shown, empty="never due between these instants")


def _clock(local: str) -> str:
    """Write a local time with its weekday, for a person."""
    read = datetime.fromisoformat(local)
    offset = read.strftime(" %z") if read.tzinfo else ""
    return f"{read:%a %Y-%m-%d %H:%M:%S}{offset}"


def _job_row(found: dict[str, Any], times: Times) -> tuple[object, ...]:
    schedule, handler = found["schedule"], found["handler"]
    return (
        found["job"],
        f"{schedule['text']} {schedule['zone']}",
        times.show(found["next_at"]),
        f"{handler['mode']} {handler['function']}",
        found["queue"],
        ", ".join(_decision(name, value) for name, value in found["decisions"].items()),
        found["description"],
    )


def _decision(name: str, value: str | float) -> str:
    shown = value if isinstance(value, str) else duration_text(timedelta(seconds=value))
    return f"{name} {shown}"
