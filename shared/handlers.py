"""The ways in which a job's code is called: for an account or a chunk in the ledger's transaction, or outside of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, get_args

from shared.calls import AccountCall, BlockingAccountCall, BlockingChunkCall, ChunkCall, Handled, Json, OutsideCall
from shared.declaration import Fault, keep_faults
from shared.explained import explain_mistakes, left_out_faults
from shared.job_faults import common_faults, duration_faults, login_faults, number_faults, one_of, role_faults

Settle = Literal["each", "batched"]

MAXIMUM_CHUNK = 1000


@explain_mistakes
@dataclass(frozen=True)
class PerAccount:
    """One call for each account, in the transaction that settles its ledger row.

    `handler` is an async or plain function of one `AccountCall`; a plain one runs in a thread, and receives a
    `BlockingAccountCall`. `chunk_size` accounts travel in one message, each in a savepoint of its own. With
    `settle="batched"` one-account messages that wait together share a transaction in the same way.
    `concurrency` counts the transactions at once in one worker.

    `role` is a database role that is taken around the call: a guard against mistakes. With `login` the worker connects
    as another login for this job, whose address is in `MATINS_LOGIN_URL_<LOGIN>`, and the call can do no more than it.
    """

    handler: Callable[[AccountCall], Awaitable[None]] | Callable[[BlockingAccountCall], None] | str
    role: str | None = None
    timeout: timedelta = timedelta(seconds=30)
    chunk_size: int = 1
    settle: Settle = "each"
    concurrency: int = 8
    login: str | None = None
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the handler's form and the ranges."""
        keep_faults(
            self,
            common_faults(self),
            role_faults("role", self.role),
            login_faults(self.role, self.login),
            number_faults("chunk_size", self.chunk_size, 1, MAXIMUM_CHUNK, whole=True),
            one_of("settle", self.settle, get_args(Settle)),
        )


@explain_mistakes
@dataclass(frozen=True)
class SetBased:
    """One call for a chunk of accounts, in the transaction that settles their ledger rows.

    `handler` is an async or plain function of one `ChunkCall` that gives a `Handled`. `timeout` is for the chunk;
    `role` and `login` are those of `PerAccount`.
    """

    handler: Callable[[ChunkCall], Awaitable[Handled]] | Callable[[BlockingChunkCall], Handled] | str
    role: str | None = None
    timeout: timedelta = timedelta(seconds=60)
    chunk_size: int = 100
    concurrency: int = 4
    login: str | None = None
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the handler's form and the ranges."""
        keep_faults(
            self,
            common_faults(self),
            role_faults("role", self.role),
            login_faults(self.role, self.login),
            number_faults("chunk_size", self.chunk_size, 1, MAXIMUM_CHUNK, whole=True),
        )


@explain_mistakes
@dataclass(frozen=True)
class Outside:
    """One call for each account whose effect lies outside the database, with no transaction held.

    `handler` is an async or plain function of one `OutsideCall`; what it gives (JSON, at most 4 KiB) is kept on the
    ledger row. `key_valid_for` is how long the provider remembers an idempotency key: a later re-run could repeat the
    effect, and is refused unless the operator says that it was reconciled. `login` is the database login under which
    the job's own code may call `matins.settle(call.ticket)`, and so commit an effect here together with the ledger row.
    """

    handler: Callable[[OutsideCall], Awaitable[Json]] | Callable[[OutsideCall], Json] | str
    key_valid_for: timedelta
    timeout: timedelta = timedelta(seconds=30)
    concurrency: int = 16
    login: str | None = None
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the handler's form and the ranges."""
        keep_faults(
            self,
            common_faults(self),
            login_faults(None, self.login),
            left_out_faults(self, {"key_valid_for": "how long the provider remembers a key, as hours(24)"}),
            duration_faults("key_valid_for", self.key_valid_for, minimum=timedelta(seconds=1)),
        )

    @property
    def chunk_size(self) -> int:
        """Always 1: each effect stands alone."""
        return 1

    @property
    def role(self) -> None:
        """None: no transaction is held, so there is no role to take."""
        return
