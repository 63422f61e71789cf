"""The command `redrive`: reading what is parked, and publishing it again."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shared.terminal import FAILED, REFUSED, Refused, print_json, run, say, settings_for, told
from shared.terminal_tables import Times, print_line, print_table
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import Actor, AsJson, Zone
from trigger.commands_order import order_or_look
from trigger.reach import reach

if TYPE_CHECKING:
    from shared.settings import Settings
    from shared.topology import Topology
    from trigger.operate import Order
    from trigger.parked import Parked
    from trigger.redrive import Redriven

MOST_LISTED = 10_000


def redrive_command(
    *,
    message: Annotated[
        list[str] | None, typer.Option("--message", metavar="ID", help="This one; may be repeated.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that are parked now.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what is parked, and what each would do; publish nothing.")
    ] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept for good in the audit trail.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST_LISTED, help="With --dry-run: at most.")] = 50,
    actor: Actor = None,
    zone: Zone = "UTC",
    as_json: AsJson = False,
) -> None:
    """Publish parked messages again: what the broker gave up on, after it had ended its workers, or nobody could read.

    A message only points at accounts. Those that still wait are run; one that has ended, as `dead`, is run again by
    `rerun` alone, and its message then only leaves the queue. A copy has no second effect.

    Needs the broker's operator. Exit code 1: the broker did not take some, they are still parked; 2: some cannot be
    read, name nothing here or are not parked; the others are done all the same.
    """
    with told(PROGRAM):
        order, times = order_or_look(actor, reason, dry_run=dry_run), Times(zone)
        if dry_run and (message or everything):
            raise Refused("--dry-run lists what is parked: leave --message and --all out")
        if not dry_run and bool(message) == everything:
            raise Refused("say which: --message ID, as `redrive --dry-run` lists them, or --all")
        settings, topology, seconds = _prepared()
        if dry_run:
            found, count = run(lambda: _look(settings, topology, limit, seconds))
            _show(found, count, times, as_json=as_json)
            return
        done = run(lambda: _act(settings, topology, None if everything else message, order, seconds))
        _tell(done, as_json=as_json)


async def _look(settings: "Settings", topology: "Topology", limit: int, seconds: float) -> "tuple[list[Parked], int]":
    from shared.fleet import read_topology  # noqa: PLC0415 - a command loads only what it uses
    from trigger.parked import list_parked  # noqa: PLC0415 - a command loads only what it uses

    async with reach(settings) as session:
        recorded = await read_topology(session) or {}
        url = settings.secret("broker_url")
        return await list_parked(session, url, topology, recorded, limit, timeout=seconds)


async def _act(
    settings: "Settings", topology: "Topology", chosen: list[str] | None, order: "Order", seconds: float
) -> "Redriven":
    from trigger.redrive import redrive  # noqa: PLC0415 - a command loads only what it uses

    async with reach(settings) as session:
        return await redrive(session, settings.secret("broker_url"), topology, chosen, order, timeout=seconds)


def _prepared() -> "tuple[Settings, Topology, float]":
    from shared.start import topology_of  # noqa: PLC0415 - a command loads only what it uses

    settings = settings_for("environment", "database_url", "broker_url")
    return settings, topology_of(settings, {}), settings.broker_timeout.total_seconds()


def _show(found: "list[Parked]", count: int, times: Times, *, as_json: bool) -> None:
    if as_json:
        print_json({"parked": count, "messages": [asdict(one) for one in found]})
        return
    headings = ("message", "of", "accounts", "died of", "in", "at", "redriven")
    print_table("", headings, [_row(one, times) for one in found], empty="nothing is parked")
    if count > len(found):
        say(PROGRAM, f"{len(found)} of {count} are shown: --limit")


def _row(one: "Parked", times: Times) -> tuple[Any, ...]:
    accounts = ", ".join(one.accounts) + (f" and {more} more" if (more := one.count - len(one.accounts)) > 0 else "")
    at = times.show(one.died_at) if one.died_at else None
    return one.message or "without an id", one.occurrence, accounts, one.died_of, one.died_in, at, one.would


def _tell(done: "Redriven", *, as_json: bool) -> None:
    redriven, refused, failed = done.ended("redriven"), done.ended("refused"), done.ended("failed")
    if as_json:
        sides = {"redriven": redriven, "refused": refused, "failed": failed}
        listed = {name: [{**asdict(one.parked), "told": one.told} for one in side] for name, side in sides.items()}
        print_json({**listed, "missing": done.missing, "left": done.left, "problem": done.problem})
    else:
        print_line(done.told)
    for line in done.troubles:
        say(PROGRAM, line)
    if failed or done.problem:
        raise typer.Exit(FAILED)
    if refused or done.missing:
        raise typer.Exit(REFUSED)
