"""Rolling up usage: one statement for a chunk of accounts, in the transaction that also settles their ledger rows.

It adds the window's usage to the totals. That is safe because the windows of the occurrences that run neither overlap
nor leave a hole, and because at most one effect commits for each occurrence and account.
"""

from shared.job import ChunkCall, Handled
from shared.sql_files import statement

ROLL_UP = statement("examples.billing", "roll_up")


async def roll_up(call: ChunkCall) -> Handled:
    """Add what the accounts used in the window to their totals; an account that is gone or lacks a tax id fails."""
    rows = await call.connection.fetch(
        ROLL_UP, list(call.accounts), call.window.since, call.window.until, str(call.occurrence)
    )
    sound = [row for row in rows if row["problem"] is None]
    return Handled(
        done=[row["account"] for row in sound if row["used"]],
        nothing_to_do=[row["account"] for row in sound if not row["used"]],
        failed={row["account"]: row["problem"] for row in rows if row["problem"] is not None},
    )
