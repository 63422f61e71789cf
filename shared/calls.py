"""What a handler receives, what it may raise, and what it returns: the author's side of a job."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeAlias

from schemas.occurrence import Identity
from shared.errors import MatinsError

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None


class Connection(Protocol):
    """The part of an asyncpg connection that a handler needs; the effect and the ledger commit in its transaction."""

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        """Run a statement and give its command tag."""

    async def executemany(self, command: str, args: Iterable[Sequence[Any]], *, timeout: float | None = None) -> None:
        """Run a statement for each row of arguments."""

    async def fetch(self, query: str, *args: Any, timeout: float | None = None) -> list[Any]:
        """Run a query and give its rows."""

    async def fetchrow(self, query: str, *args: Any, timeout: float | None = None) -> Any:
        """Run a query and give its first row, or None."""

    async def fetchval(self, query: str, *args: Any, column: int = 0, timeout: float | None = None) -> Any:
        """Run a query and give one value of its first row, or None."""


class BlockingConnection(Protocol):
    """The same connection for a plain function, which runs in a thread: each call waits for its result."""

    def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        """Run a statement and give its command tag."""

    def executemany(self, command: str, args: Iterable[Sequence[Any]], *, timeout: float | None = None) -> None:
        """Run a statement for each row of arguments."""

    def fetch(self, query: str, *args: Any, timeout: float | None = None) -> list[Any]:
        """Run a query and give its rows."""

    def fetchrow(self, query: str, *args: Any, timeout: float | None = None) -> Any:
        """Run a query and give its first row, or None."""

    def fetchval(self, query: str, *args: Any, column: int = 0, timeout: float | None = None) -> Any:
        """Run a query and give one value of its first row, or None."""


@dataclass(frozen=True, slots=True)
class Window:
    """The time that an occurrence covers, `since` (exclusive) to `until` (inclusive), both aware and in UTC.

    It spans every instant that was coalesced into the occurrence or skipped before it, so a handler never asks what
    time it is.
    """

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class _Call:
    occurrence: Identity
    window: Window


@dataclass(frozen=True, slots=True)
class AccountCall(_Call):
    """One account, in the transaction that also settles its ledger row."""

    account: str
    attempt: int
    key: str
    connection: Connection


@dataclass(frozen=True, slots=True)
class BlockingAccountCall(_Call):
    """What a plain function receives where an async one receives an `AccountCall`."""

    account: str
    attempt: int
    key: str
    connection: BlockingConnection


@dataclass(frozen=True, slots=True)
class ChunkCall(_Call):
    """Several accounts for one set-based statement, in the transaction that also settles their ledger rows."""

    accounts: tuple[str, ...]
    connection: Connection


@dataclass(frozen=True, slots=True)
class BlockingChunkCall(_Call):
    """What a plain function receives where an async one receives a `ChunkCall`."""

    accounts: tuple[str, ...]
    connection: BlockingConnection


@dataclass(frozen=True, slots=True)
class OutsideCall(_Call):
    """One account whose effect lies outside the database; no transaction is held while it runs.

    `key` is the idempotency key for the provider: the same in every try and every generation. With `ticket` code of a
    job that has a `login` settles its account itself, in its own transaction: ``select matins.settle(ticket)``.
    """

    account: str
    attempt: int
    key: str
    ticket: str = ""


@dataclass(frozen=True, slots=True)
class Handled:
    """What a set-based handler did: an account that it names nowhere has failed.

    `done` and `nothing_to_do` are account ids; `failed` maps an account id to the reason.
    """

    done: Iterable[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    nothing_to_do: Iterable[str] = ()


class NothingToDo(MatinsError):
    """Raised by a handler: the account needs nothing. It counts as succeeded, and is counted apart."""


class RetryLater(MatinsError):
    """Raised by a handler: try again after `after`. It uses up a try like any other failure."""

    def __init__(self, reason: str = "", *, after: timedelta) -> None:
        """Keep the wait; `reason` goes into the report if no try is left. Raises TypeError for anything else."""
        given: object = after
        if not isinstance(given, timedelta):
            problem = f"RetryLater(after={after!r}): a duration is needed, as timedelta(seconds=30)"
            raise TypeError(problem)
        super().__init__(reason or f"asked to be tried again after {after}")
        self.after = after


class GiveUp(MatinsError):
    """Raised by a handler: no further try can succeed. The account fails at once, with the reason in the report."""


def idempotency_key(identity: Identity, account: str, *, salt: str = "") -> str:
    """Give the key for one account of one occurrence: 64 hexadecimal digits, the same in every generation.

    It is SHA-256 over job, variant, instant, account and `salt` (an operator's deliberate new key), each preceded by
    its length in bytes so that no two inputs share a text.
    """
    digest = hashlib.sha256()
    for part in (identity.job, identity.variant, identity.scheduled_at.isoformat(), account, salt):
        encoded = part.encode()
        digest.update(f"{len(encoded)}:".encode())
        digest.update(encoded)
    return digest.hexdigest()
