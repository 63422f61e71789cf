"""The command `prune`."""

import re
from dataclasses import asdict
from datetime import datetime
from typing import Annotated

import typer

from schemas.occurrence import format_instant
from shared.terminal import confirm, print_json, read_instant, run, settings_for, told
from shared.terminal_tables import print_line, print_table
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import Actor, AsJson
from trigger.commands_order import order_or_look
from trigger.prune import Pruned, prune
from trigger.reach import reach

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_THOUSAND = 1000.0


def prune_command(
    *,
    before: Annotated[
        str,
        typer.Option("--before", metavar="DATE", help="Months that are over by then (UTC) are dropped: 2026-06-01."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be dropped; change nothing.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept for good in the audit trail.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Drop the ledgers of months that lie wholly before a date. Nights may run meanwhile.

    Needs the login that migrates. Occurrences keep their row, counts and report, but their accounts can no longer be
    listed or run again, and nothing that old is ever claimed. Exit code 1: try again; 2: something there is not over.
    """
    with told(PROGRAM):
        instant = read_date("--before", before)
        order = order_or_look(actor, reason, dry_run=dry_run)
        settings = settings_for("environment", "database_url")
        if not dry_run:
            confirm(f"Every ledger that is over by {format_instant(instant)} is dropped for good. Go on?", yes=yes)

        async def act() -> Pruned:
            async with reach(settings) as session:
                return await prune(session, instant, order, dry_run=dry_run)

        pruned = run(act)
        if as_json:
            print_json({"dry_run": dry_run, **asdict(pruned)})
        else:
            _print(pruned, dry_run=dry_run)


def read_date(option: str, text: str) -> datetime:
    """Read a date, which is its beginning in UTC, or an instant. Raises Refused, naming the option."""
    return read_instant(option, f"{text}T00:00Z" if _DATE.fullmatch(text) else text)


def _print(pruned: Pruned, *, dry_run: bool) -> None:
    rows = [(one.name, one.occurrences, one.unsuccessful, one.accounts, _size(one.bytes)) for one in pruned.months]
    headings = ("ledger", "occurrences", "not succeeded", "accounts", "size")
    print_table("Would be dropped" if dry_run else "Dropped", headings, rows, empty="no ledger")
    also = f"{pruned.publications} watermarks, {pruned.attempts} attempts, {pruned.instances} ended processes"
    also += f", {pruned.notifications} messages"
    print_line(f"{also} {'would be' if dry_run else 'were'} deleted")
    since = format_instant(pruned.retained_from)
    print_line(f"nothing due before {since} {'would' if dry_run else 'will'} be claimed or run again")


def _size(count: int) -> str:
    size = float(count)
    for unit in _UNITS[:-1]:
        if size < _THOUSAND:
            return f"{size:.3g} {unit}"
        size /= _THOUSAND
    return f"{size:.3g} {_UNITS[-1]}"
