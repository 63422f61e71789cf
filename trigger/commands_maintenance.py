"""Plan maintenance: alerts of its time are recorded, and told to nobody before it is over; `add`, `list`, `end`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from shared.terminal import Refused, print_json, read_instant, run, settings_for, told
from shared.terminal_tables import Times, print_line, print_table
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import Actor, AsJson, Lasting, Reason, Until, Zone
from trigger.commands_order import order_of
from trigger.ends import read_until
from trigger.maintenances import list_maintenance
from trigger.reach import reach

if TYPE_CHECKING:
    from trigger.maintenance import Planned

MOST_LISTED = 1000


def maintenance_add_command(
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="The job's name; or give --all.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Of all jobs, and of the fleet itself.")] = False,
    since: Annotated[
        str | None, typer.Option("--since", metavar="INSTANT", help="It begins then; by default now.")
    ] = None,
    until: Until = None,
    lasting: Lasting = None,
    reason: Reason,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Plan a maintenance, of one job or of all: what is out of order meanwhile is told to nobody before its end.

    Alerts are opened and listed all the same, and what is over by its end was told to nobody. Jobs fire as ever:
    `pause` is what stops them. It lasts 7 days at most and begins within 90. Exit code 2 for anything else; the same
    once more is no other.
    """
    from trigger.maintenance import add_maintenance  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        if (job is None) != every:
            raise Refused("give a JOB, or --all for all of them" + (", not both" if every else ""))
        order, begin = order_of(actor, reason), read_instant("--since", since) if since else None
        end = read_until(until, lasting)
        settings = settings_for("environment", "database_url")

        async def act() -> "Planned":
            async with reach(settings) as session:
                return await add_maintenance(session, job, begin, end, order)

        _print(run(act), as_json=as_json)


def maintenance_list_command(
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="Of this job, and of all jobs.")] = None,
    *,
    over_too: Annotated[bool, typer.Option("--all", help="Also what is over.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST_LISTED)] = 50,
    zone: Zone = "UTC",
    as_json: AsJson = False,
) -> None:
    """List planned maintenance: what is in force, what is to come, and with --all what is over."""
    with told(PROGRAM):
        times = Times(zone)
        settings = settings_for("database_url")

        async def look() -> list[dict[str, Any]]:
            async with reach(settings) as session:
                return await list_maintenance(session, job, over_too=over_too, limit=limit)

        found = run(look)
        if as_json:
            print_json(found)
            return
        rows = [
            (
                one["id"],
                one["job"] or "all jobs",
                one["state"],
                times.show(one["since"]),
                times.show(one["until"]),
                one["actor"],
                one["reason"],
            )
            for one in found
        ]
        headings = ("id", "of", "state", "since", "until", "by", "reason")
        print_table("", headings, rows, empty="no maintenance is planned")


def maintenance_end_command(
    maintenance: Annotated[int, typer.Argument(metavar="ID", min=1, help="As `maintenance list` lists it.")],
    *,
    reason: Reason,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """End a maintenance now, or withdraw one that is to come: what is still out of order is then told.

    One that is over already stays as it is. Exit code 2 when there is none of that number.
    """
    from trigger.maintenance import end_maintenance  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order = order_of(actor, reason)
        settings = settings_for("environment", "database_url")

        async def act() -> str:
            async with reach(settings) as session:
                return await end_maintenance(session, maintenance, order)

        said = run(act)
        if as_json:
            print_json({"maintenance": maintenance, "told": said})
        else:
            print_line(said)


def _print(done: "Planned", *, as_json: bool) -> None:
    from trigger.maintenance import told_plan  # noqa: PLC0415 - a command loads only what it uses

    if as_json:
        print_json({name: getattr(done, name) for name in ("id", "job", "since", "until", "added")})
        return
    print_line(told_plan(done))
