"""Declaring work that every worker does for itself: in its own process, when it is due, without the broker.

It is for what is cheap and may be done any number of times: refreshing what a process holds, tidying its own disk. Each
worker has an occurrence of its own, and one row in it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from schemas.occurrence import Identity
from shared.calls import BlockingConnection, Connection, Window
from shared.declaration import Fault, keep_faults
from shared.explained import explain_mistakes
from shared.job_faults import duration_faults, duration_text, handler_faults, role_faults

LONGEST_TIMEOUT = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class WorkerCall:
    """One worker's own run; `worker` is the id of its process, and `window` begins where its last run's ended."""

    occurrence: Identity
    window: Window
    worker: str
    connection: Connection


@dataclass(frozen=True, slots=True)
class BlockingWorkerCall:
    """What a plain function receives where an async one receives a `WorkerCall`."""

    occurrence: Identity
    window: Window
    worker: str
    connection: BlockingConnection


@dataclass(frozen=True, slots=True)
class EachWorker:
    """Where other jobs have their accounts: each live worker is the one account of its own occurrence."""

    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)


@explain_mistakes
@dataclass(frozen=True)
class EveryWorker:
    """One call in each worker, in the transaction that settles its row; tried once for each instant.

    `handler` is an async or plain function of one `WorkerCall`; a plain one runs in a thread, and receives a
    `BlockingWorkerCall`. It must be able to run any number of times: a worker runs it only when `try --twice` has shown
    of this very code that a second run changes nothing. `role` is that of `PerAccount`.
    """

    handler: Callable[[WorkerCall], Awaitable[None]] | Callable[[BlockingWorkerCall], None] | str
    role: str | None = None
    timeout: timedelta = timedelta(seconds=30)
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the handler's form and the ranges."""
        timeout = duration_faults("timeout", self.timeout, minimum=timedelta(milliseconds=1))
        if not timeout and self.timeout > LONGEST_TIMEOUT:
            longest = f"at most {duration_text(LONGEST_TIMEOUT)}: it is for cheap work"
            timeout += (Fault("timeout", f"is {duration_text(self.timeout)}", longest),)
        keep_faults(
            self, handler_faults("handler", self.handler, "EveryWorker"), timeout, role_faults("role", self.role)
        )

    @property
    def chunk_size(self) -> int:
        """Always 1: a worker's own occurrence has one row."""
        return 1

    @property
    def concurrency(self) -> int:
        """Always 1: no second run begins in a worker while one goes on."""
        return 1

    @property
    def login(self) -> None:
        """None: it runs on a connection of the worker's."""
        return


def every_worker_faults(job: Any) -> tuple[Fault, ...]:
    """Check that coordination, handler, accounts and decisions of a job all speak of every worker, or none does."""
    told = {
        "coordination": (job.coordination == "every", 'coordination="every"'),
        "handler": (isinstance(job.handler, EveryWorker), "EveryWorker(…)"),
        "accounts": (isinstance(job.accounts, EachWorker), "EachWorker()"),
    }
    if not any(does for does, _ in told.values()):
        return ()
    saying = " and ".join(one for does, one in told.values() if does)
    faults = tuple(Fault(place, f"does not go with {saying}", one) for place, (does, one) in told.items() if not does)
    only = {"catch_up": "skip", "overlap": "skip"}
    faults += tuple(
        Fault(f"decisions: {name}", f"is {getattr(job.decisions, name)!r}", f'"{word}" for what every worker runs')
        for name, word in only.items()
        if getattr(job.decisions, name, word) != word
    )
    return faults
