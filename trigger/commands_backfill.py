"""The commands about running past instants: backfill, backfills, cancel-backfill."""

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from schemas.occurrence import format_instant
from shared.terminal import print_json, read_instant, run, settings_for, told
from shared.terminal_tables import Times, print_line, print_table
from trigger.backfill_choice import MEANT, MOST_ACTIVE, Mode
from trigger.backfills import list_backfills
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import Actor, AsJson, Reason, Zone
from trigger.commands_order import order_of, order_or_look
from trigger.reach import reach

if TYPE_CHECKING:
    from trigger.backfill import Backfill

MOST_LISTED = 1000

Since: TypeAlias = Annotated[str, typer.Option("--from", metavar="INSTANT", help="The earliest instant, included.")]
Until: TypeAlias = Annotated[
    str, typer.Option("--until", metavar="INSTANT", help="The latest, included; not in the future.")
]
ModeChosen: TypeAlias = Annotated[
    Mode,
    typer.Option(
        "--mode",
        help="`missing`: what never ran. `failed`: what ended partial, failed or cancelled. `all`: both. What has "
        "succeeded is never run again.",
    ),
]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; change nothing.")]
MaxActive: TypeAlias = Annotated[
    int,
    typer.Option(
        "--max-active", min=1, max=MOST_ACTIVE, help="At most so many at once; only with the job's overlap=allow."
    ),
]


def backfill_command(  # noqa: PLR0913 - each is an option of the command line
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")],
    *,
    since: Since,
    until: Until,
    mode: ModeChosen = "missing",
    dry_run: DryRun = False,
    reverse: Annotated[bool, typer.Option("--reverse", help="The latest first.")] = False,
    max_active: MaxActive = 1,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept for good in the audit trail.")] = "",
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Run past instants of a job's schedule; live triggers do it, and the schedule goes on beside it, and first.

    Everything that it runs is written at once, and then claimed like any other occurrence, each with the window of its
    own instant. Accounts that failed run again, in the next generation; those that succeeded don't. `backfills` shows
    how far it is. Exit code 2: the range reaches into the future, nothing is there to run, or one goes on already.
    """
    from trigger.backfill import Backfill, Range, backfill  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order = order_or_look(actor, reason, dry_run=dry_run)
        asked = Range(read_instant("--from", since), read_instant("--until", until), mode, reverse, max_active)
        settings = settings_for("environment", "database_url")

        async def act() -> Backfill:
            async with reach(settings) as session:
                return await backfill(session, job, asked, order, dry_run=dry_run)

        _print(job, run(act), as_json=as_json)


def backfills_command(
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="Of this job alone.")] = None,
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST_LISTED)] = 20,
    zone: Zone = "UTC",
    as_json: AsJson = False,
) -> None:
    """List backfills, the latest first, each with its progress: what waits, what runs, and how the others ended."""
    with told(PROGRAM):
        times = Times(zone)
        settings = settings_for("database_url")

        async def look() -> list[dict[str, Any]]:
            async with reach(settings) as session:
                return await list_backfills(session, job, limit)

        found = run(look)
        if as_json:
            print_json(found)
            return
        headings = ("id", "job", "range", "mode", "state", "done", "waiting", "runs", "not succeeded", "left out", "by")
        print_table("", headings, [_listed(one, times) for one in found], empty="no backfill")


def cancel_backfill_command(
    backfill: Annotated[int, typer.Argument(metavar="ID", help="As `backfills` lists it.")],
    *,
    reason: Reason,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """End a backfill: what waits for it is skipped, what runs goes on to its end; `cancel` that by its own name.

    Another backfill of the range takes up what was skipped. Exit code 2 when it has ended already.
    """
    from trigger.backfill import cancel_backfill  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order = order_of(actor, reason)
        settings = settings_for("environment", "database_url")

        async def act() -> str:
            async with reach(settings) as session:
                return await cancel_backfill(session, backfill, order)

        job = run(act)
        if as_json:
            print_json({"backfill": backfill, "job": job, "state": "cancelled"})
        else:
            print_line(f"backfill {backfill} of {job} is cancelled; what runs goes on to its end")


def _print(job: str, made: "Backfill", *, as_json: bool) -> None:
    if as_json:
        instants = [
            {"scheduled_at": one.past.scheduled_at, "action": MEANT[one.action], "why": one.why} for one in made.chosen
        ]
        shown = {"backfill": made.id, "job": job, "started": len(made.started), "instants": instants}
        print_json(shown | {"remarks": made.remarks})
        return
    rows = [(format_instant(one.past.scheduled_at), MEANT[one.action], one.why) for one in made.chosen]
    if made.id is None:
        print_table("Would be done", ("instant", "", "why"), rows, empty="no instant of the schedule lies there")
        print_line(f"{len(made.started)} of {len(rows)} would run")
    else:
        left = [row for row in rows if row[1] == MEANT["leave"]]
        if left:
            print_table("Left", ("instant", "", "why"), left)
        print_line(
            f"backfill {made.id} of {job}: {len(made.started)} of {len(rows)} are run; `backfills` shows how far"
        )
    for remark in made.remarks:
        print_line(remark, "yellow")


def _listed(one: dict[str, Any], times: Times) -> tuple[object, ...]:
    unsuccessful = one["partial"] + one["failed"] + one["cancelled"]
    return (
        one["id"],
        one["job"],
        f"{times.show(one['since'])} to {times.show(one['until'])}",
        one["mode"] + (", latest first" if one["reverse"] else ""),
        one["state"],
        f"{one['succeeded'] + unsuccessful} of {one['total']}",
        one["waiting"],
        one["running"],
        unsuccessful,
        one["left_out"],
        f"{one['actor']}: {one['reason']}",
    )
