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
from shared.decisions import Backoff, Decisions, hours, minutes, seconds, to_paste
from shared.declaration import Fault, keep_faults
from shared.explained import UNDECIDED, explain_mistakes, left_out_faults, undecided_names
from shared.job_faults import (
    duration_faults,
    duration_text,
    function_name,
    handler_faults,
    name_faults,
    number_faults,
    one_of,
    role_faults,
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


@explain_mistakes
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
            _common_faults(self),
            role_faults("role", self.role),
            number_faults("chunk_size", self.chunk_size, 1, MAXIMUM_CHUNK, whole=True),
            one_of("settle", self.settle, get_args(Settle)),
        )


@explain_mistakes
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
            _common_faults(self),
            role_faults("role", self.role),
            number_faults("chunk_size", self.chunk_size, 1, MAXIMUM_CHUNK, whole=True),
        )


@explain_mistakes
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
            _common_faults(self),
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


Handler = PerAccount | SetBased | Outside


@explain_mistakes
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
        own = (
            *name_faults("name", self.name),
            *to_paste(("decisions",) if "decisions" in undecided_names(self) else ()),
            *left_out_faults(self, _EXAMPLES),
            *name_faults("queue", self.queue),
            *number_faults("max_tries", self.max_tries, 1, MAXIMUM_TRIES, whole=True),
            *number_faults("partial_ok", self.partial_ok, 0, 1),
            *one_of("on_finish_within", self.on_finish_within, get_args(OnFinishWithin)),
            *one_of("coordination", self.coordination, get_args(Coordination)),
            *_part_faults(self),
        )
        keep_faults(self, tuple(fault.within(self.place) for fault in own))

    @property
    def place(self) -> str:
        """How faults name it."""
        return f"job {self.name!r}"


_EXAMPLES = {
    "schedule": 'Cron("0 2 * * *")',
    "accounts": 'SqlAccounts("select id as account from customer")',
    "handler": "PerAccount(function) | SetBased(function) | Outside(function, key_valid_for=hours(24))",
}
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
        elif place == "handler" and callable(part):
            name = getattr(part, "__name__", "function").replace("<lambda>", "function")
            told = f"is the function {function_name(part)} itself; write PerAccount({name})"
            faults.append(Fault(place, told, _EXAMPLES["handler"].replace("function", name)))
        elif part is not UNDECIDED:
            faults.append(Fault(place, f"is {part!r}", " | ".join(f"{kind.__name__}(…)" for kind in kinds)))
    return tuple(faults)


def _common_faults(handler: Any) -> tuple[Fault, ...]:
    timeout = handler.timeout
    faults = (
        *handler_faults("handler", handler.handler, type(handler).__name__),
        *duration_faults("timeout", timeout, minimum=timedelta(milliseconds=1)),
        *number_faults("concurrency", handler.concurrency, 1, MAXIMUM_CONCURRENCY, whole=True),
    )
    # The broker takes a message back from a consumer that has not acknowledged it for 30 minutes.
    if isinstance(timeout, timedelta) and timeout > LONGEST_TIMEOUT:
        longest = f"at most {duration_text(LONGEST_TIMEOUT)}, well inside the broker's ack timeout"
        faults += (Fault("timeout", f"is {duration_text(timeout)}", longest),)
    return faults
