"""Declaring a job: when it is due, for which accounts, what is done for each, and what has to be decided."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, get_args

from shared.accounts import AccountAt, AccountSource, GeneratedAccounts, SourceCall, SqlAccounts
from shared.calendars import read_calendar
from shared.calls import (
    AccountCall,
    BlockingAccountCall,
    BlockingChunkCall,
    ChunkCall,
    GiveUp,
    Handled,
    NothingToDo,
    OutsideCall,
    RetryLater,
    Window,
)
from shared.coordination import Coordination, coordination_faults
from shared.decisions import Backoff, Decisions, hours, minutes, seconds, to_paste
from shared.declaration import Fault, keep_faults
from shared.every_worker import BlockingWorkerCall, EachWorker, EveryWorker, WorkerCall
from shared.exclusions import Between, Calendar, Dates, Weekdays
from shared.explained import UNDECIDED, explain_mistakes, left_out_faults, undecided_names
from shared.handlers import Outside, PerAccount, SetBased
from shared.job_faults import duration_faults, function_name, name_faults, number_faults, one_of
from shared.runs_elsewhere import NotHere, bound_faults, decided_elsewhere
from shared.schedule import Cron
from shared.schedule_every import Every
from shared.schedule_except import Except
from shared.schedule_instants import Instants
from shared.schedule_protocol import Schedule

__all__ = [
    "AccountAt",
    "AccountCall",
    "Backoff",
    "Between",
    "BlockingAccountCall",
    "BlockingChunkCall",
    "BlockingWorkerCall",
    "Calendar",
    "ChunkCall",
    "Coordination",
    "Cron",
    "Dates",
    "Decisions",
    "EachWorker",
    "Every",
    "EveryWorker",
    "Except",
    "GeneratedAccounts",
    "GiveUp",
    "Handled",
    "Handler",
    "Instants",
    "Job",
    "NothingToDo",
    "Outside",
    "OutsideCall",
    "PerAccount",
    "RetryLater",
    "RunsElsewhere",
    "SetBased",
    "SourceCall",
    "SqlAccounts",
    "Weekdays",
    "Window",
    "WorkerCall",
    "hours",
    "minutes",
    "read_calendar",
    "seconds",
]

OnFinishWithin = Literal["alert", "stop"]

MAXIMUM_TRIES = 1000
MOST_FAILURES = 1000
LONGEST_JITTER = timedelta(days=1)

Handler = PerAccount | SetBased | Outside | EveryWorker | NotHere


@explain_mistakes
@dataclass(frozen=True)
class Job:
    """A named piece of recurring work.

    `queue` is the broker queue that its messages go to: by default one of its own; jobs may share one. `partial_ok` is
    the share of accounts, 0 to 1, that may fail while the occurrence still counts as succeeded.
    `on_finish_within="stop"` ends the dispatch when `finish_within` is over: the occurrence closes as partial and names
    the accounts that were not touched. `jitter` puts each occurrence off by up to so long, always by the same time, so
    that jobs of one instant do not all begin at it; its name and its window stay those of the scheduled instant.

    `coordination` says who attempts: every trigger (`claim`), the one that leads (`leader`), an outside scheduler that
    calls in time (`external`); or each worker runs its own (`every`, with EachWorker() and EveryWorker(function)). With
    `region` the triggers of other regions attempt `region_delay` later.

    After `pause_after_failures` failed occurrences in a row the job is paused until a person resumes it; a partial one
    ends the row.
    """

    name: str
    schedule: Schedule
    accounts: AccountSource | EachWorker | NotHere
    handler: Handler
    decisions: Decisions
    max_tries: int = 5
    backoff: Backoff = field(default_factory=Backoff)
    queue: str = ""
    partial_ok: float = 0.0
    on_finish_within: OnFinishWithin = "alert"
    jitter: timedelta = timedelta(0)
    coordination: Coordination = "claim"
    region: str = ""
    region_delay: timedelta = timedelta(0)
    description: str = ""
    pause_after_failures: int | None = None
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
            *duration_faults("jitter", self.jitter, maximum=LONGEST_JITTER),
            *one_of("on_finish_within", self.on_finish_within, get_args(OnFinishWithin)),
            *coordination_faults(self),
            *_failures_faults(self),
            *_part_faults(self, tuple(_PARTS)),
        )
        keep_faults(self, tuple(fault.within(self.place) for fault in own))

    @property
    def place(self) -> str:
        """How faults name it."""
        return f"job {self.name!r}"

    @property
    def has_messages(self) -> bool:
        """Whether its accounts go to workers through the broker, and so through a queue."""
        return self.coordination not in {"every", "elsewhere"}


@explain_mistakes
@dataclass(frozen=True)
class RunsElsewhere(Job):
    """Recurring work that something else runs, as a foreign cron job, and that only checks in: start, success, fail.

    Its schedule says which occurrences there are, so that one that never checks in is seen. What has not started within
    `start_within` of its instant raises an alert, and so does what has not ended within `finish_within` of its start.
    What is not heard of within `heard_within` of its instant is over: `missed` if it never started, else `failed`.
    """

    start_within: timedelta = field(kw_only=True)
    finish_within: timedelta = field(kw_only=True)
    heard_within: timedelta = field(kw_only=True)
    # What other jobs have to say of their code, accounts and messages, there is nothing to say of here.
    accounts: NotHere = field(default=NotHere(), init=False)
    handler: NotHere = field(default=NotHere(), init=False)
    decisions: Decisions = field(init=False)
    coordination: Coordination = field(default="elsewhere", init=False)
    max_tries: int = field(default=1, init=False)
    backoff: Backoff = field(default_factory=Backoff, init=False)
    queue: str = field(default="", init=False)
    partial_ok: float = field(default=0.0, init=False)
    on_finish_within: OnFinishWithin = field(default="alert", init=False)
    jitter: timedelta = field(default=timedelta(0), init=False)
    region: str = field(default="", init=False)
    region_delay: timedelta = field(default=timedelta(0), init=False)
    pause_after_failures: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Check the job, and write its bounds as the decisions that they are."""
        bounds = (self.start_within, self.finish_within, self.heard_within)
        own = (
            *name_faults("name", self.name),
            *left_out_faults(self, {"schedule": _EXAMPLES["schedule"]}),
            *bound_faults(*bounds),
            *_part_faults(self, ("schedule",)),
        )
        object.__setattr__(self, "decisions", UNDECIDED if own else decided_elsewhere(*bounds))
        keep_faults(self, tuple(fault.within(self.place) for fault in own))


def _failures_faults(job: Job) -> tuple[Fault, ...]:
    failures = job.pause_after_failures
    if failures is None:
        return ()
    if job.coordination == "every":
        told = "is given, and means nothing where each worker runs its own: one that fails stops no other"
        return (Fault("pause_after_failures", told, "leave it out"),)
    return number_faults("pause_after_failures", failures, 1, MOST_FAILURES, whole=True)


_EXAMPLES = {
    "schedule": 'Cron("0 2 * * *")',
    "accounts": 'SqlAccounts("select id as account from customer")',
    "handler": "PerAccount(function) | SetBased(function) | Outside(function, key_valid_for=hours(24))",
}
_PARTS: dict[str, tuple[type[Any], ...]] = {
    "schedule": (Cron, Every, Instants, Except),
    "accounts": (SqlAccounts, GeneratedAccounts, EachWorker),
    "handler": (PerAccount, SetBased, Outside, EveryWorker),
    "decisions": (Decisions,),
    "backoff": (Backoff,),
}


def _part_faults(job: Job, places: tuple[str, ...]) -> tuple[Fault, ...]:
    """Give the faults of a job's parts, and one for each that is of no kind that goes there."""
    faults: list[Fault] = []
    for place in places:
        kinds, part = _PARTS[place], getattr(job, place)
        if isinstance(part, kinds):
            faults.extend(fault.within(place) for fault in part.faults)
        elif place == "handler" and callable(part):
            name = getattr(part, "__name__", "function").replace("<lambda>", "function")
            told = f"is the function {function_name(part)} itself; write PerAccount({name})"
            faults.append(Fault(place, told, _EXAMPLES["handler"].replace("function", name)))
        elif part is not UNDECIDED:
            faults.append(Fault(place, f"is {part!r}", " | ".join(f"{kind.__name__}(…)" for kind in kinds)))
    return tuple(faults)
