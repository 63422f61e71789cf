"""The commands about the broker's queues: queues, retire-queue."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shared.terminal import FAILED, print_json, run, settings_for, told
from shared.terminal_tables import print_line, print_table
from trigger.commands_deploy import PROGRAM, load_for
from trigger.commands_options import Actor, AsJson, Reason
from trigger.commands_order import order_of
from trigger.reach import reach

if TYPE_CHECKING:
    from shared.settings import Settings
    from shared.topology import Topology
    from trigger.queues import QueueLine


def queues_command(*, as_json: AsJson = False) -> None:
    """List the queues that migrate has made: current or old, by whom they are counted on, and what they hold.

    Exit code 1 when an old one still holds messages, or one is missing.
    """
    from trigger.queues import list_queues  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        settings, topology, seconds = _prepared()

        async def look() -> "list[QueueLine]":
            async with reach(settings) as session:
                return await list_queues(session, settings.secret("broker_url"), topology, timeout=seconds)

        found = run(look)
        if as_json:
            print_json([asdict(one) for one in found])
        else:
            headings = ("queue", "version", "waiting", "consumers", "counted on by", "arguments")
            print_table("", headings, [_row(one) for one in found], empty="migrate has made none")
        if any(one.messages is None or (one.messages and not one.current) for one in found):
            raise typer.Exit(FAILED)


def retire_queue_command(
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="An old queue, as `queues` lists it.")],
    *,
    reason: Reason,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Delete an old queue that is empty and that no live process counts on.

    What is still published with its key goes to the new queue. Needs the broker's user that migrates. Exit code 1:
    workers had not let go of it yet, try again; 2: it is current, or counted on, or holds messages.
    """
    from trigger.queues import retire  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order = order_of(actor, reason)
        settings, topology, seconds = _prepared()

        async def act() -> None:
            async with reach(settings) as session:
                await retire(session, settings.secret("broker_url"), topology, queue, order, timeout=seconds)

        run(act)
        if as_json:
            print_json({"queue": queue, "retired": True})
        else:
            print_line(f"{queue} is gone")


def _prepared() -> "tuple[Settings, Topology, float]":
    from shared.start import topology_of  # noqa: PLC0415 - a command loads only what it uses

    settings = settings_for("environment", "jobs", "database_url", "broker_url")
    loaded = load_for(settings)
    loaded.refuse_faults()
    return settings, topology_of(settings, loaded.jobs), settings.broker_timeout.total_seconds()


def _row(one: "QueueLine") -> tuple[Any, ...]:
    telling = {name.removeprefix("x-"): value for name, value in one.arguments.items() if name in _TELLING}
    told_arguments = ", ".join(f"{name} {value}" for name, value in telling.items())
    state = "missing" if one.messages is None else "current" if one.current else "old"
    return one.queue, state, one.messages, one.consumers, len(one.used_by), told_arguments


_TELLING = ("x-delivery-limit", "x-message-ttl")
