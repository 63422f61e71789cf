"""Declaring a job: when it is due, for which accounts, what is done for each, and what has to be decided."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, get_args

from shared.accounts import AccountAt, AccountSource, GeneratedAccounts, SourceCall, SqlAccounts
from shared.calls import (
    AccountCall,
    BlockingAccountCall,
    BlockingChunkCall,
    ChunkCall,
    GiveUp,
    Handled,
    Json,
    NothingToDo,
    OutsideCall,
    RetryLater,
    Window,
)
from shared.decisions import Backoff, Decisions, hours, keep_faults, minutes, seconds, to_paste
from shared.declaration import Fault
from shared.job_faults import (
    UNDECIDED,
    duration_faults,
    explain_missing,
    handler_faults,
    name_faults,
    number_faults,
    one_of,
    role_faults,
    undecided_names,
)
from shared.schedule import Cron

__all__ = [
    "AccountAt",
    "AccountCall",
    "Backoff",
    "BlockingAccountCall",
    "BlockingChunkCall",
    "ChunkCall",
    "Cron",
    "Decisions",
    "GeneratedAccounts",
    "GiveUp",
    "Handled",
    "Handler",
    "Job",
    "NothingToDo",
    "Outside",
    "OutsideCall",
    "PerAccount",
    "RetryLater",
    "SetBased",
    "SourceCall",
    "SqlAccounts",
    "Window",
    "hours",
    "minutes",
    "seconds",
]

Coordination = Literal["claim"]
OnFinishWithin = Literal["alert", "stop"]
Settle = Literal["each", "batched"]

MAXIMUM_CHUNK = 1000
MAXIMUM_CONCURRENCY = 1000
MAXIMUM_TRIES = 1000
LONGEST_TIMEOUT = timedelta(minutes=20)


@dataclass(frozen=True)
class PerAccount:
    """One call for each account, in the transaction that settles its ledger row.

    `handler` is an async or plain function of one `AccountCall`; a plain one runs in a thread, and receives a
    `BlockingAccountCall`. `chunk_size` accounts travel in one message, each in a savepoint of its own. With
    `settle="batched"` one-account messages that wait together share a transaction in the same way.
    `concurrency` counts the transactions at once in one worker.
    """

    handler: Callable[[AccountCall], Awaitable[None]] | Callable[[BlockingAccountCall], None] | str
    role: str | None = None
    timeout: timedelta = timedelta(seconds=30)
    chunk_size: int = 1
    settle: Settle = "each"
    concurrency: int = 8
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the handler's form and the ranges."""
        keep_faults(
            self,
            _common_faults(self.handler, self.timeout, self.concurrency),
            role_faults("role", self.role),
            number_faults("chunk_size", self.chunk_size, 1, MAXIMUM_CHUNK, whole=True),
            one_of("settle", self.settle, get_args(Settle)),
        )


@dataclass(frozen=True)
class SetBased:
    """One call for a chunk of accounts, in the transaction that settles their ledger rows.

    `handler` is an async or plain function of one `ChunkCall` that gives a `Handled`. `timeout` is for the chunk.
    """

    handler: Callable[[ChunkCall], Awaitable[Handled]] | Callable[[BlockingChunkCall], Handled] | str
    role: str | None = None
    timeout: timedelta = timedelta(seconds=60)
    chunk_size: int = 100
    concurrency: int = 4
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the handler's form and the ranges."""
        keep_faults(
            self,
            _common_faults(self.handler, self.timeout, self.concurrency),
            role_faults("role", self.role),
            number_faults("chunk_size", self.chunk_size, 1, MAXIMUM_CHUNK, whole=True),
        )


@dataclass(frozen=True)
class Outside:
    """One call for each account whose effect lies outside the database, with no transaction held.

    `handler` is an async or plain function of one `OutsideCall`; what it gives (JSON, at most 4 KiB) is kept on the
    ledger row. `key_valid_for` is how long the provider remembers an idempotency key: a later re-run could repeat the
    effect, and is refused unless the operator says that it was reconciled.
    """

    handler: Callable[[OutsideCall], Awaitable[Json]] | Callable[[OutsideCall], Json] | str
    key_valid_for: timedelta
    timeout: timedelta = timedelta(seconds=30)
    concurrency: int = 16
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the handler's form and the ranges."""
        keep_faults(
            self,
            _common_faults(self.handler, self.timeout, self.concurrency),
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


Handler = PerAccount | SetBased | Outside


@explain_missing
@dataclass(frozen=True)
class Job:
    """A named piece of recurring work.

    `queue` is the broker queue that its messages go to: by default one of its own; jobs may share one. `partial_ok` is
    the share of accounts, 0 to 1, that may fail while the occurrence still counts as succeeded.
    `on_finish_within="stop"` ends the dispatch when `finish_within` is over: the occurrence closes as partial and names
    the accounts that were not touched.
    """

    name: str
    schedule: Cron
    accounts: AccountSource
    handler: Handler
    decisions: Decisions
    max_tries: int = 5
    backoff: Backoff = field(default_factory=Backoff)
    queue: str = ""
    partial_ok: float = 0.0
    on_finish_within: OnFinishWithin = "alert"
    coordination: Coordination = "claim"
    description: str = ""
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the job and gather the faults of its parts."""
        if self.queue == "":
            object.__setattr__(self, "queue", self.name)
        missing = undecided_names(self)
        own = (
            *name_faults("name", self.name),
            *to_paste(("decisions",) if "decisions" in missing else ()),
            *(
                Fault(name, "is left out", "see `Job`'s documentation")
                for name in missing
                if name not in {"decisions", "name"}
            ),
            *name_faults("queue", self.queue),
            *number_faults("max_tries", self.max_tries, 1, MAXIMUM_TRIES, whole=True),
            *number_faults("partial_ok", self.partial_ok, 0, 1),
            *one_of("on_finish_within", self.on_finish_within, get_args(OnFinishWithin)),
            *one_of("coordination", self.coordination, get_args(Coordination)),
            *_part_faults(self),
        )
        place = f"job {self.name!r}"
        keep_faults(self, tuple(fault.within(place) for fault in own))


_PARTS: dict[str, tuple[type[Any], ...]] = {
    "schedule": (Cron,),
    "accounts": (SqlAccounts, GeneratedAccounts),
    "handler": (PerAccount, SetBased, Outside),
    "decisions": (Decisions,),
    "backoff": (Backoff,),
}


def _part_faults(job: Job) -> tuple[Fault, ...]:
    faults: list[Fault] = []
    for place, kinds in _PARTS.items():
        part = getattr(job, place)
        if isinstance(part, kinds):
            faults.extend(fault.within(place) for fault in part.faults)
        elif part is not UNDECIDED:
            faults.append(Fault(place, f"is {part!r}", " | ".join(f"{kind.__name__}(…)" for kind in kinds)))
    return tuple(faults)


def _common_faults(handler: object, timeout: object, concurrency: object) -> tuple[Fault, ...]:
    faults = (
        *handler_faults("handler", handler),
        *duration_faults("timeout", timeout, minimum=timedelta(milliseconds=1)),
        *number_faults("concurrency", concurrency, 1, MAXIMUM_CONCURRENCY, whole=True),
    )
    # The broker takes a message back from a consumer that has not acknowledged it for 30 minutes.
    if isinstance(timeout, timedelta) and timeout > LONGEST_TIMEOUT:
        faults += (
            Fault("timeout", f"is {timeout}", f"at most {LONGEST_TIMEOUT}, well inside the broker's ack timeout"),
        )
    return faults
