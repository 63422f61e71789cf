"""Forgetting an account: a pseudonym takes its place everywhere in the schema, in one transaction.

The pseudonym is random and nowhere kept beside the account, so nobody can go back, and one that is forgotten again,
after its source has named it again, gets another. Rows that are open are refused: they have to run once, as they are.
What did not succeed is never run again under the pseudonym, which no handler knows.

Rows of the audit trail that name the account are redacted: the entry of this act lists them with the digests of what
they say now, and their salts go, so that the chain stays whole and nobody can guess what they said.
"""

import secrets
from dataclasses import dataclass
from typing import Any

from schemas.audit import FORGOTTEN, digest
from schemas.occurrence import Identity
from shared.postgres import InsufficientPrivilege, Session
from shared.sql_files import statement
from shared.terminal import NotDone, Refused
from trigger.operate import Order
from trigger.unchained_audit import AUDIT_EXTENT

HOLD_CHAIN = statement("trigger", "hold_chain")
FIND_ACCOUNT = statement("trigger", "find_account")
OCCURRENCE_EXTENT = statement("trigger", "occurrence_extent")
FORGET_ROWS = statement("trigger", "forget_rows")
FORGET_NEIGHBOURS = statement("trigger", "forget_neighbours")
FORGET_OCCURRENCES = statement("trigger", "forget_occurrences")
FORGET_ORDERS = statement("trigger", "forget_orders")
FORGET_ALERTS = statement("trigger", "forget_alerts")
FORGET_LOCKS = statement("trigger", "forget_locks")
FORGET_AUDIT = statement("trigger", "forget_audit")
FORGET_SALTS = statement("trigger", "forget_salts")
AUDIT_OWNER = statement("trigger", "audit_owner")
IS_NAMED = "select matins.redact($1, $2, '') is distinct from $1"

IDS_AT_ONCE = 10_000
SHOWN = 5


@dataclass(slots=True)
class Forgotten:
    """How many rows of each kind were changed, or would be; `redacted` are rows of the audit trail."""

    pseudonym: str
    accounts: int = 0
    occurrences: int = 0
    orders: int = 0
    alerts: int = 0
    locks: int = 0
    redacted: int = 0


async def forget(session: Session, account: str, order: Order, *, dry_run: bool = False) -> Forgotten:
    """Pseudonymise an account; with `dry_run` only say what would be changed.

    Raises Refused when a row of the account is open or a fan-out stands at it, when the reason names it, or when the
    login does not own the tables; NotDone when it was run again meanwhile.
    """
    forgotten = Forgotten(f"forgotten-{secrets.token_hex(8)}")
    transaction = session.transaction()
    await transaction.start()
    try:
        await _refuse_reason(session, account, order)
        await _forget(session, account, order, forgotten)
    except BaseException as error:
        await transaction.rollback()
        if isinstance(error, InsufficientPrivilege):
            raise Refused(f"this login may not change what is kept ({error}): use the one that migrates") from error
        raise
    await (transaction.rollback() if dry_run else transaction.commit())
    return forgotten


async def _refuse_reason(session: Session, account: str, order: Order) -> None:
    if await session.fetchval(IS_NAMED, order.reason, account):
        raise Refused("--reason: it names the account, and is kept for good")


async def _forget(session: Session, account: str, order: Order, forgotten: Forgotten) -> None:
    names = (account, forgotten.pseudonym)
    last = await session.fetchval(OCCURRENCE_EXTENT)
    ranges = [(above, min(above + IDS_AT_ONCE, last)) for above in range(0, last, IDS_AT_ONCE)]
    found = [row for one in ranges for row in await session.fetch(FIND_ACCOUNT, account, *one)]
    _refuse_open(found)
    where = ([one["id"] for one in found], [one["scheduled_at"] for one in found])
    forgotten.accounts = await session.fetchval(FORGET_ROWS, *names, *where)
    if forgotten.accounts != len(found):
        raise NotDone("the account was run again meanwhile: wait for its end, and try again")
    forgotten.occurrences = await session.fetchval(FORGET_NEIGHBOURS, *names, *where)
    for one in ranges:
        changed: Any = await session.fetchrow(FORGET_OCCURRENCES, *names, *one)
        if changed["goes_on"]:
            raise Refused("the reading of an occurrence's accounts stands at this one: wait until it has gone on")
        forgotten.occurrences += changed["changed"]
    forgotten.orders = await session.fetchval(FORGET_ORDERS, *names)
    forgotten.alerts = await session.fetchval(FORGET_ALERTS, *names)
    forgotten.locks = await session.fetchval(FORGET_LOCKS, account)
    await _redact(session, names, order, forgotten)


def _refuse_open(found: list[Any]) -> None:
    still = [str(Identity(row["job"], row["scheduled_at"], row["variant"])) for row in found if row["is_open"]]
    if still:
        more = f" and {len(still) - SHOWN} more" if len(still) > SHOWN else ""
        raise Refused(f"the account still runs, or waits, in {', '.join(still[:SHOWN])}{more}: wait for its end")


async def _redact(session: Session, names: tuple[str, str], order: Order, forgotten: Forgotten) -> None:
    """Redact the audit trail, and record what was done; the account is named in neither."""
    await session.execute(HOLD_CHAIN)
    extent: Any = await session.fetchrow(AUDIT_EXTENT)
    redacted: list[dict[str, Any]] = []
    for above in range(extent["first"] - 1, extent["last"], IDS_AT_ONCE):
        rows = await session.fetch(FORGET_AUDIT, *names, above, above + IDS_AT_ONCE)
        redacted += [{"id": row["id"], "digest": digest(dict(row), b"").hex()} for row in rows]
    await session.execute(FORGET_SALTS, [one["id"] for one in redacted])
    forgotten.redacted = len(redacted)
    detail = {
        "pseudonym": forgotten.pseudonym,
        "accounts": forgotten.accounts,
        "occurrences": forgotten.occurrences,
        "orders": forgotten.orders,
        "alerts": forgotten.alerts,
        "redacted": redacted,
    }
    await session.execute(AUDIT_OWNER, FORGOTTEN, order.instance, order.actor, order.reason, detail)
