"""The commands by which the owner takes away what is kept: forget-account, prune-audit."""

from dataclasses import asdict
from typing import Annotated

import typer

from schemas.occurrence import format_instant
from shared.terminal import Refused, confirm, print_json, run, settings_for, told
from shared.terminal_tables import print_line
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import Actor, AsJson
from trigger.commands_order import order_or_look
from trigger.commands_prune import read_date
from trigger.forget import Forgotten, forget
from trigger.prune_audit import PrunedAudit, prune_audit
from trigger.reach import reach

_NOT_OURS = (
    "what is not in this schema is yours to change: the account's source, the tables of the handlers, parked messages, "
    "logs, traces and backups"
)


def forget_account_command(
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account's id, as its source gives it.")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be changed; change nothing.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept for good, so without the account.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Put a random pseudonym in an account's place, everywhere in the schema. It cannot be undone.

    Needs the login that migrates. Ledger, reports, reasons, alerts and the audit trail are changed; what did not
    succeed can't be run again. Take the account from its source first, or the next occurrence names it again. Exit code
    1: it was run again meanwhile; 2: it still runs.
    """
    with told(PROGRAM):
        order = order_or_look(actor, reason, dry_run=dry_run)
        if not account:
            raise Refused("ACCOUNT: it is empty")
        settings = settings_for("environment", "database_url")
        if not dry_run:
            confirm("The account's name is lost for good, in every table of the schema. Go on?", yes=yes)

        async def act() -> Forgotten:
            async with reach(settings) as session:
                return await forget(session, account, order, dry_run=dry_run)

        forgotten = run(act)
        if as_json:
            print_json({"dry_run": dry_run, **asdict(forgotten)})
        else:
            _print_forgotten(forgotten, dry_run=dry_run)


def _print_forgotten(forgotten: Forgotten, *, dry_run: bool) -> None:
    counted = (
        f"{forgotten.accounts} accounts of occurrences, {forgotten.occurrences} reports and errors, "
        f"{forgotten.orders} reasons, {forgotten.alerts} alerts and messages, {forgotten.locks} locks, "
        f"{forgotten.redacted} rows of the audit trail"
    )
    print_line(f"would be changed: {counted}" if dry_run else f"{forgotten.pseudonym} now: {counted}")
    print_line(_NOT_OURS)


def prune_audit_command(
    *,
    before: Annotated[
        str, typer.Option("--before", metavar="DATE", help="Sealed rows that are older (UTC) go: 2026-06-01.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go; change nothing.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the audit trail.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Delete the beginning of the audit trail, up to a date. What is left verifies from there on.

    Needs the login that migrates. First the trail is verified, and nothing goes from one that is not whole; the act has
    its own entry, with the last position and its hash. Exit code 1: try again; 2: not whole, or something is not over.
    """
    with told(PROGRAM):
        instant = read_date("--before", before)
        order = order_or_look(actor, reason, dry_run=dry_run)
        settings = settings_for("environment", "database_url")
        if not dry_run:
            confirm(f"The audit trail before {format_instant(instant)} is deleted for good. Go on?", yes=yes)

        async def act() -> PrunedAudit:
            async with reach(settings) as session:
                return await prune_audit(session, instant, order, dry_run=dry_run)

        pruned = run(act)
        if as_json:
            print_json({"dry_run": dry_run, **asdict(pruned), "hash": pruned.hash.hex()})
            return
        verb = "would go" if dry_run else "are gone"
        print_line(f"{pruned.rows} rows {verb}, through position {pruned.position} of the chain")
