"""Which accounts travel together: the messages for a page of ledger rows. Pure.

Untouched accounts share a message, up to the job's chunk size and to the largest body that a reader accepts. One that
has been tried, or whose earlier start ended without a trace, travels alone, so that it is charged alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from schemas.message import MAXIMUM_BYTES, WorkMessage

# More than everything else in a body takes: names of at most 63 bytes, numbers and instants.
_ENVELOPE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What the publisher reads of an account's row."""

    account: str
    position: int
    generation: int
    epoch: int
    attempts: int
    starts: int
    isolated: bool

    @property
    def travels_alone(self) -> bool:
        """Whether the account has been tried, or has been started and not settled."""
        return self.isolated or self.attempts > 0 or self.starts > 0


def ledger_row(row: Any) -> LedgerRow:
    """Read a database row that has the columns of the same names."""
    return LedgerRow(*(row[name] for name in LedgerRow.__slots__))


def grouped(rows: Iterable[LedgerRow], chunk_size: int) -> Iterator[tuple[LedgerRow, ...]]:
    """Give the rows of each message, in the rows' order."""
    chunk: list[LedgerRow] = []
    size = _ENVELOPE_BYTES
    for row in rows:
        bytes_needed = len(msgspec.json.encode(row.account)) + 1
        fits = (
            len(chunk) < chunk_size
            and size + bytes_needed <= MAXIMUM_BYTES
            and not row.travels_alone
            and not any(one.travels_alone or one.generation != row.generation for one in chunk[-1:])
        )
        if chunk and not fits:
            yield tuple(chunk)
            chunk, size = [], _ENVELOPE_BYTES
        chunk.append(row)
        size += bytes_needed
    if chunk:
        yield tuple(chunk)


def work_message(
    rows: tuple[LedgerRow, ...],
    *,
    job: str,
    occurrence_id: int,
    scheduled_at: datetime,
    epoch: int,
    published_at: datetime,
) -> WorkMessage:
    """Compose the message for one group of rows."""
    return WorkMessage(
        job=job,
        occurrence_id=occurrence_id,
        scheduled_at=scheduled_at,
        generation=rows[0].generation,
        epoch=epoch,
        published_at=published_at,
        accounts=tuple(row.account for row in rows),
        isolated=rows[0].isolated or rows[0].starts > 0,
    )
