"""The commands after a restore: restored, reconcile."""

from dataclasses import asdict
from typing import Annotated

import typer

from shared.terminal import FAILED, Refused, given, print_json, read_instant, run, settings_for, told
from shared.terminal_tables import Times, print_line, print_table
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import Actor, AsJson, Reason, Zone
from trigger.commands_order import order_of
from trigger.reach import reach
from trigger.reconcile import Affected, Reconciliation, reconcile, release, restored


def restored_command(
    *,
    reason: Reason,
    through: Annotated[
        str | None, typer.Option("--through", metavar="INSTANT", help="What happened until then is in the database.")
    ] = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Say that the database was restored, or may have lost commits: everything is held until `reconcile --release`.

    Nothing is claimed, published or started meanwhile; what is due waits, and is planned. The fleet notices most
    restores by itself; one of a disk's snapshot, with every process stopped, only a person can tell of.

    Exit code 2 when everything is held already.
    """
    with told(PROGRAM):
        order = order_of(actor, reason)
        known_through = read_instant("--through", through) if through else None
        settings = settings_for("environment", "database_url")

        async def act() -> None:
            async with reach(settings) as session:
                await restored(session, order, known_through)

        run(act)
        if as_json:
            print_json({"held": True, "reason": order.reason, "known_through": known_through})
        else:
            print_line("everything is held; `reconcile` shows what will run again")


def reconcile_command(
    *,
    release_hold: Annotated[bool, typer.Option("--release", help="End the hold; needs --reason.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why it may go on; kept for good in the audit trail.")] = "",
    actor: Actor = None,
    zone: Zone = "UTC",
    as_json: AsJson = False,
) -> None:
    """Show what a restore means: which occurrences go on or run again, and whose outside effects may happen twice.

    Exit code 1 while everything is held. With --release it is shown and then released: cancel first what must not run.
    """
    with told(PROGRAM):
        times = Times(zone)
        if release_hold and not reason:
            raise Refused("--release: say with --reason why it may go on")
        if reason and not release_hold:
            raise Refused("--reason: it is kept of a release, so it goes with --release")
        order = order_of(actor, reason or "look")
        settings = settings_for("environment", "database_url")

        async def act() -> Reconciliation:
            async with reach(settings) as session:
                url, seconds = given(settings, "broker_url"), settings.broker_timeout.total_seconds()
                found = await reconcile(session, url, timeout=seconds)
                if release_hold:
                    await release(session, order)
                return found

        found = run(act)
        if as_json:
            print_json({**asdict(found), "released": release_hold})
        else:
            _print(found, times, released=release_hold)
        if found.held_since and not release_hold:
            raise typer.Exit(FAILED)


def _print(found: Reconciliation, times: Times, *, released: bool) -> None:
    if found.held_since is None:
        print_line("nothing is held")
    else:
        print_line(f"held since {times.show(found.held_since)}: {found.held_reason}", "bold")
        print_line(f"what happened after {times.show(found.known_through)} is not in the database")
    headings = ("occurrence", "state", "then", "accounts read", "open", "outside effects")
    rows = [
        (one.occurrence, one.state, one.then, one.accounts_read, one.open, _outside(one, times))
        for one in found.occurrences
    ]
    print_table("Occurrences", headings, rows)
    waiting = "unseen: " + found.unseen if found.unseen else "none"
    print_table("Messages that wait", ("queue", "messages"), list(found.queues.items()), empty=waiting)
    print_line("a message without its row has no effect; one whose row is open is its row's own work")
    if released:
        print_line("released", "green")
    elif found.held_since:
        print_line("cancel what must not run; then: reconcile --release --reason WHY")


def _outside(one: Affected, times: Times) -> str:
    if one.key_valid_until is None:
        return "none: they were put back with the database"
    if one.key_forgotten:
        return (
            f"may happen twice: keys were valid until {times.show(one.key_valid_until)}; compare the provider's books"
        )
    return f"repeated with the same keys, which the provider knows until {times.show(one.key_valid_until)}"
