"""The commands that look at declared jobs, and do so without any server: jobs, preview."""

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any

import typer

from shared import clock
from shared.bounds import months_later
from shared.definition import definition_of
from shared.job_faults import duration_text
from shared.schedule import Cron, Fold, Gap
from shared.terminal import FAILED, Refused, print_json, read_instant, say, settings_for, told
from shared.terminal_tables import Times, print_line, print_table
from shared.timing import Timing
from trigger.commands_deploy import PROGRAM, load_for, refuse_unknown
from trigger.commands_options import AsJson, Zone
from trigger.jobs_alerts import open_by_job
from trigger.preview import PreviewRow, preview, rows_as_json, shared_by_all

SHOWN_BY_DEFAULT = 10
MOST_SHOWN = 100_000
MOST_MONTHS = 600
FARTHEST = timedelta(days=60 * 366)
_BEFORE = timedelta(microseconds=1)


def jobs_command(*, zone: Zone = "UTC", as_json: AsJson = False) -> None:
    """List the jobs that MATINS_JOBS declares, each with its next instant and its decisions.

    It needs no server; where MATINS_DATABASE_URL is set, the number of each job's open alerts stands beside it. Exit
    code 1 when some are faulty; the sound ones are listed.
    """
    with told(PROGRAM):
        times, settings = Times(zone), settings_for("jobs")
        loaded = load_for(settings)
        now, alerts = clock.utc_now(), open_by_job(settings)
        found: list[dict[str, Any]] = [
            {
                "job": name,
                "when": job.schedule.description,
                "next_at": job.schedule.next_after(now),
                "alerts": None if alerts is None else alerts.get(name, []),
                **definition_of(job),
            }
            for name, job in sorted(loaded.jobs.items())
        ]
        if as_json:
            print_json({"jobs": found, "faults": [str(fault) for fault in loaded.faults]})
        else:
            headings = ("job", "schedule", "next", "alerts", "handler", "queue", "decisions", "description")
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
    months: Annotated[
        int | None, typer.Option("--months", min=1, max=MOST_MONTHS, help="So many months, instead of --until.")
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--count", min=1, max=MOST_SHOWN, help="At most; by default 10, or all with --until or --months."),
    ] = None,
    notable: Annotated[
        bool, typer.Option("--notable", help="Only rows that have a note; jobs of every instant are named once.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show when a job, or a cron text, is due. Asks no server.

    Every clock change is explained, with the policy that decides; what a calendar leaves out is there, with its reason;
    the job's jitter is added; and other declared jobs of the same instant are named.
    """
    with told(PROGRAM):
        timing, others = _timing(job, cron, zone, gap, fold)
        after = (read_instant("--from", since) if since else clock.utc_now()).astimezone(UTC) - _BEFORE
        most = count or (MOST_SHOWN if until or months else SHOWN_BY_DEFAULT)
        rows_beside = partial(preview, timing, after, _last(after, until, months), most)
        rows = rows_beside(others)
        _show_preview(timing, _notable(rows, others, rows_beside) if notable else rows, as_json=as_json)
        if (until or months) and sum(row.due_at is not None for row in rows) == most:
            say(PROGRAM, f"there may be more: {most} are shown at most; go on with --from")


def _notable(
    rows: list[PreviewRow], others: list[Timing], rows_beside: Callable[[list[Timing]], list[PreviewRow]]
) -> list[PreviewRow]:
    """Give the rows that have a note, without the jobs that share every instant, which are said once."""
    if usual := shared_by_all(rows, others):
        say(PROGRAM, f"at every instant also due: {', '.join(usual)}")
        rows = rows_beside([one for one in others if one.job not in usual])
    return [row for row in rows if row.note]


def _last(after: datetime, until: str | None, months: int | None) -> datetime:
    if until and months:
        problem = "--until and --months both say how far: give one of them"
        raise Refused(problem)
    if months:
        return months_later(after + _BEFORE, months)
    last = read_instant("--until", until).astimezone(UTC) if until else after + FARTHEST
    if last <= after:
        problem = "--until: lies before --from"
        raise Refused(problem)
    return last


def _timing(
    job: str | None, cron: str | None, zone: str | None, gap: str | None, fold: str | None
) -> tuple[Timing, list[Timing]]:
    """Give what is previewed, and the other declared jobs."""
    if (job is None) == (cron is None):
        problem = "give a JOB, or --cron TEXT" + (", not both" if job else "")
        raise Refused(problem)
    if cron is not None:
        return Timing("preview", Cron(cron, zone or "UTC", _policy(gap), _policy(fold))), []
    if zone or gap or fold:
        problem = "--zone, --gap and --fold belong to --cron: a job declares its own"
        raise Refused(problem)
    loaded = load_for(settings_for("jobs"))
    chosen = refuse_unknown(str(job), loaded)
    return Timing.of(chosen), [Timing.of(one) for name, one in sorted(loaded.jobs.items()) if name != chosen.name]


def _policy(text: str | None) -> Any:
    """Give a policy as it was written: the schedule itself refuses a wrong one."""
    policy: Gap | Fold | str | None = text
    return policy


def _show_preview(timing: Timing, shown: Sequence[PreviewRow], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(rows_as_json(shown) + "\n")
    else:
        _print_preview(timing, shown)
    for warning in timing.schedule.warnings():
        say(PROGRAM, f"warning: {warning}")


def _print_preview(timing: Timing, rows: Sequence[PreviewRow]) -> None:
    print_line(timing.schedule.description, "bold")
    due = ("due",) if timing.jitter else ()
    shown = [(_instant(row), *(_due(row) for _ in due), _clock(row.local), row.note) for row in rows]
    print_table("", ("UTC", *due, "local", "note"), shown, empty="nothing to show between these instants")


def _instant(row: PreviewRow) -> str:
    return "(no run)" if row.due_at is None else str(row.scheduled_at)


def _due(row: PreviewRow) -> str:
    return "" if row.due_at is None else row.due_at.partition("T")[2]


def _clock(local: str) -> str:
    """Write a local time with its weekday, for a person."""
    read = datetime.fromisoformat(local)
    offset = read.strftime(" %z") if read.tzinfo else ""
    return f"{read:%a %Y-%m-%d %H:%M:%S}{offset}"


def _job_row(found: dict[str, Any], times: Times) -> tuple[object, ...]:
    handler = found["handler"]
    return (
        found["job"],
        found["when"],
        times.show(found["next_at"]),
        len(found["alerts"]) if found["alerts"] else None,
        f"{handler['mode']} {handler['function']}" if "function" in handler else found["coordination"],
        found["queue"],
        ", ".join(_decision(name, value) for name, value in found["decisions"].items()),
        found["description"],
    )


def _decision(name: str, value: str | float) -> str:
    shown = value if isinstance(value, str) else duration_text(timedelta(seconds=value))
    return f"{name} {shown}"
