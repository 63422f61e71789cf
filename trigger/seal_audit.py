"""Sealing the audit trail: chaining by hash, in batches, what was appended freely.

A chain that each act lengthened would have all acts wait for one another. So rows are only added, and a pass chains
those whose transactions are over, in the order of (transaction, id): nothing can come before them any more, whatever
order they were committed in. Which rows those are is told by one reading of the running transactions, and the rows are
read after it. A transaction that runs for long delays what began after it, and keeps nothing out for good.

A dump that was loaded into another server brings the numbers of transactions that this one has not had, or has had
otherwise: a new era begins, in which all that is not chained is looked for once.

Everything of a batch is one transaction. The head of the chain is then logged, so that it is kept where nobody who can
write to the database can change it.
"""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from schemas.audit import GENESIS, SALT_BYTES, digest, link
from shared.fleet import take_lease
from shared.logs import logger
from shared.postgres import Database, Row, Session, transaction
from shared.restore import server_identity
from shared.sql_files import statement

LOCK_CHAIN = statement("trigger", "lock_chain")
CHAIN_HEAD = statement("trigger", "chain_head")
UNSEALED_ROWS = statement("trigger", "unsealed_rows")
WRITE_CHAIN = statement("trigger", "write_chain")
WRITE_SEAL = statement("trigger", "write_seal")

ROWS_AT_ONCE = 1000
BATCHES_AT_ONCE = 20
SEAL_INTERVAL = timedelta(seconds=5)
LEASE_NAME = "seal audit"
LEASE = timedelta(seconds=20)
_BEGINNING = ("0", 0)
_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Sealed:
    """One batch: the head of the chain behind it, its rows, and whether more are to be sealed at once."""

    position: int
    hash: bytes
    rows: int
    more: bool


async def seal_pass(database: Database, instance: str) -> int:
    """Seal what may be sealed, unless another trigger does; give how many rows."""
    rows = 0
    async with database.session() as session:
        if not await take_lease(session, LEASE_NAME, instance, LEASE):
            return 0
        for _ in range(BATCHES_AT_ONCE):
            sealed = await seal(session, instance)
            if sealed is None:
                break
            rows += sealed.rows
            if sealed.rows:
                _log.info("audit sealed", position=sealed.position, hash=sealed.hash.hex(), rows=sealed.rows)
            if not sealed.more:
                break
    return rows


async def seal(session: Session, instance: str, *, at_most: int = ROWS_AT_ONCE) -> Sealed | None:
    """Seal one batch of at most `at_most` rows; None when there is nothing to seal, or another is at it."""
    # Before the transaction: a server that doesn't tell would end it.
    server = await server_of(session)
    async with transaction(session):
        if not await session.fetchval(LOCK_CHAIN):
            return None
        head: Any = await session.fetchrow(CHAIN_HEAD)
        moved = is_elsewhere(head, server)
        through = _BEGINNING if moved else (head["through_xid"], head["through_id"])
        first_look = moved or head["first_look"]
        rows = await session.fetch(UNSEALED_ROWS, *through, head["all_over"], first_look, at_most)
        if not rows and not moved:
            return None
        full = len(rows) == at_most
        if not full:
            through = (head["all_over"], 0)
        elif int(rows[-1]["xid"]) < int(head["all_over"]):
            through = (rows[-1]["xid"], rows[-1]["id"])
        position, hashed = await _chain(session, head, rows)
        highest = max([head["highest_id"], *(row["id"] for row in rows)])
        await session.execute(
            WRITE_SEAL,
            head["number"] + 1,
            head["era"] + moved,
            first_look and full,
            server,
            position,
            hashed,
            len(rows),
            *through,
            highest,
            instance,
        )
    return Sealed(position, hashed, len(rows), more=full)


def is_elsewhere(head: Any, server: str | None) -> bool:
    """Tell whether the chain's last batch was sealed on another server, by its name or by its transactions' numbers."""
    if head["number"] == 0:
        return False
    return head["goes_back"] or (None not in (server, head["server"]) and server != head["server"])


async def server_of(session: Session) -> str | None:
    """Name the server without its timeline: a standby that is promoted goes on with the numbers of its transactions."""
    identity = await server_identity(session)
    return None if identity is None else identity.partition("/")[0]


async def _chain(session: Session, head: Any, rows: list[Row]) -> tuple[int, bytes]:
    """Add rows behind the head; give the new one."""
    position, hashed = head["position"], head["hash"] or GENESIS
    links: list[tuple[int, int, bytes, bytes, bytes]] = []
    for row in rows:
        salt = secrets.token_bytes(SALT_BYTES)
        row_digest = digest(dict(row), salt)
        position, hashed = position + 1, link(hashed, row_digest)
        links.append((position, row["id"], row_digest, salt, hashed))
    if links:
        await session.execute(WRITE_CHAIN, *(list(column) for column in zip(*links, strict=True)))
    return position, hashed
