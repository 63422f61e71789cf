"""The arrows of the protocol, where a process can be held from outside, and what a killed one was at.

Each arrow has a trigger in the database that takes a shared advisory lock, at once as long as nobody holds it. Who is
found waiting there is ended, and so are its sessions: what it was about to write is not written.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from shared.postgres import Session
from tests.soak.jobs import POISONED_JOB
from tests.support.processes import ROOT

FIRST_KEY = 9100
OUTSIDE = "charges-at-night"


@dataclass(frozen=True, slots=True)
class Arrow:
    """A place between two writes: before `event` on a row of `table` for which `condition` holds."""

    name: str
    table: str
    event: str
    condition: str
    # The job of which every night leads there; '' when every job does.
    job: str = ""


_CLAIMING = "old.state = 'expected' and new.state = 'claimed'"
_READING = "new.accounts_read > old.accounts_read and old.accounts_read"
_SETTLED = "old.finished_at is null and new.state"
ARROWS = (
    Arrow("plan > claim", "occurrence", "update", _CLAIMING),
    Arrow("claim > first page", "occurrence", "update", f"{_READING} = 0"),
    Arrow("page > page", "occurrence", "update", f"{_READING} > 0"),
    Arrow("last page > seal", "occurrence", "update", "old.sealed_at is null and new.sealed_at is not null"),
    Arrow("publish > mark", "publication", "insert", "true"),
    Arrow(
        "publish again > mark",
        "ledger",
        "update",
        "new.state = 'pending' and old.published_at is null and new.published_at is not null"
        " and new.starts = old.starts",
    ),
    Arrow(
        "receive > start alone", "ledger", "update", "new.state = 'pending' and new.starts > old.starts", POISONED_JOB
    ),
    Arrow("receive > start outside", "ledger", "update", "old.state = 'pending' and new.state = 'running'", OUTSIDE),
    Arrow("execute > settle", "ledger", "update", "old.state = 'pending' and new.state = 'succeeded'"),
    Arrow("execute > settle outside", "ledger", "update", "old.state = 'running' and new.state = 'succeeded'", OUTSIDE),
    Arrow("execute > record a retry", "ledger", "update", "new.state = 'pending' and new.attempts > old.attempts"),
    Arrow("execute > record a failure", "ledger", "update", f"{_SETTLED} = 'failed'"),
    Arrow("dead letter > dead", "ledger", "update", f"{_SETTLED} = 'dead'", POISONED_JOB),
    Arrow("cancel > account cancelled", "ledger", "update", f"{_SETTLED} = 'cancelled'"),
    Arrow(
        "silence > sweep",
        "ledger",
        "update",
        "old.state = 'running' and new.isolated and new.state = 'pending'",
        OUTSIDE,
    ),
    Arrow(
        "loss > sweep",
        "ledger",
        "update",
        "old.state = 'pending' and new.state = 'pending' and new.published_at is null and new.attempts = old.attempts"
        " and new.generation = old.generation and new.epoch > old.epoch",
    ),
    Arrow("silence > take over", "occurrence", "update", "old.state = 'claimed' and new.claimed_by <> old.claimed_by"),
    Arrow("last settle > close", "occurrence", "update", "old.closed_at is null and new.closed_at is not null"),
)


async def install_holds(session: Session) -> None:
    """Make every arrow one where a process can be held; nobody is yet."""
    for key, arrow in enumerate(ARROWS, FIRST_KEY):
        await session.execute(
            f"""create function hold_{key}() returns trigger language plpgsql security definer as $$
                begin perform pg_advisory_xact_lock_shared({key}); return new; end $$"""
        )
        await session.execute(
            f"""create trigger hold_{key} before {arrow.event} on matins.{arrow.table} for each row
                when ({arrow.condition}) execute function hold_{key}()"""
        )


@cache
def statements() -> dict[str, str]:
    """Give the name of each of the product's statements by its text without comments and spaces."""
    found = {}
    for package in ("shared", "trigger", "worker"):
        for path in (Path(ROOT) / package / "sql").glob("*.sql"):
            found[_bare(path.read_text())] = path.stem
    return found


def statement_name(query: str) -> str:
    """Give the name of the statement that a session shows; the server cuts long texts off."""
    text = _bare(query)
    if not text:
        return "nothing"
    named = next((name for known, name in statements().items() if known.startswith(text)), None)
    return named or " ".join(text.split()[:3])


def _bare(query: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"--[^\n]*", "", query)).strip()
