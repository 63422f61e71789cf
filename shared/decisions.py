"""The decisions about *when* that every job must make, the waits between tries, and durations to write them with."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, get_args

from shared.declaration import Fault, keep_faults
from shared.explained import explain_mistakes, undecided_names
from shared.job_faults import duration_faults, number_faults, one_of

CatchUp = Literal["latest", "all", "skip"]
Overlap = Literal["skip", "queue_one", "allow", "cancel_previous"]
OverlapBy = Literal["job", "account"]
MOST_CAUGHT_UP = 1000

DECISIONS_TO_PASTE = """\
# from shared.job import Decisions, hours, minutes
decisions=Decisions(
    catch_up="latest",            # it was down when it was due: "latest" runs the last instant, "all" each, "skip" none
    catch_up_within=hours(20),    # an instant later than this is recorded as missed, and not run
    overlap="skip",               # the one before still runs: "skip" this, "queue_one", "allow", "cancel_previous"
    start_within=minutes(10),     # not claimed by then: late, and with catch_up="skip" not run
    finish_within=hours(3),       # not finished by then: see on_finish_within
),"""


def seconds(count: float) -> timedelta:
    """Give a duration of `count` seconds."""
    return timedelta(seconds=count)


def minutes(count: float) -> timedelta:
    """Give a duration of `count` minutes."""
    return timedelta(minutes=count)


def hours(count: float) -> timedelta:
    """Give a duration of `count` hours."""
    return timedelta(hours=count)


@explain_mistakes
@dataclass(frozen=True, kw_only=True)
class Backoff:
    """The wait before each further try: `first`, then `factor` times the one before, up to `limit`.

    `jitter` is the share, 0 to 1, by which a wait is shortened at random, so that accounts that failed together do not
    come back together.
    """

    first: timedelta = timedelta(seconds=5)
    factor: float = 2.0
    limit: timedelta = timedelta(hours=1)
    jitter: float = 0.2
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the ranges."""
        keep_faults(
            self,
            duration_faults("first", self.first, minimum=timedelta(milliseconds=1)),
            duration_faults("limit", self.limit, minimum=timedelta(milliseconds=1)),
            number_faults("factor", self.factor, 1, 100),
            number_faults("jitter", self.jitter, 0, 1),
        )


@explain_mistakes
@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What must be decided and has no default: leaving one out is refused with a block to paste.

    `catch_up` says what becomes of instants that fell due while nobody claimed: `latest` runs the last one and
    coalesces the others into it, `all` runs each, the oldest first, `skip` none that is later than `start_within`. With
    `all` two more are decided: no more than the last `catch_up_at_most` instants run (1 to 1000), and each starts no
    sooner than `catch_up_pace` after the one before.

    `overlap` says what becomes of an instant that falls due while an occurrence of the job still runs. With `skip` it
    is not run. With `queue_one` it waits for the end of the one that runs; a later one takes its place. With `allow` it
    runs beside it. With `cancel_previous` the one that runs is cancelled, and it starts when that is over. With
    `allow`, `overlap_by="account"` has each account wait until it is done in the occurrences before.

    `no_progress_within` is how long an active occurrence may stand still, with nothing settled, published or read,
    before it is told of; by default twice the handler's timeout, and at least ten minutes.
    """

    catch_up: CatchUp
    catch_up_within: timedelta
    overlap: Overlap
    start_within: timedelta
    finish_within: timedelta
    catch_up_at_most: int | None = None
    catch_up_pace: timedelta | None = None
    overlap_by: OverlapBy = "job"
    no_progress_within: timedelta | None = None
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check that each is decided, and valid."""
        missing = undecided_names(self)
        keep_faults(
            self,
            to_paste(missing),
            one_of("catch_up", self.catch_up, get_args(CatchUp)),
            one_of("overlap", self.overlap, get_args(Overlap)),
            duration_faults("catch_up_within", self.catch_up_within, minimum=timedelta(seconds=1)),
            duration_faults("start_within", self.start_within, minimum=timedelta(seconds=1)),
            duration_faults("finish_within", self.finish_within, minimum=timedelta(seconds=1)),
            _catch_up_faults(self),
            one_of("overlap_by", self.overlap_by, get_args(OverlapBy)),
            _account_faults(self),
            _progress_faults(self),
        )


def _catch_up_faults(decisions: Decisions) -> tuple[Fault, ...]:
    """Demand the cap and the pace where each instant is run, and refuse them where they would mean nothing."""
    given = {"catch_up_at_most": decisions.catch_up_at_most, "catch_up_pace": decisions.catch_up_pace}
    if decisions.catch_up not in get_args(CatchUp):
        return ()
    if decisions.catch_up != "all":
        told = 'is given, and means nothing without catch_up="all"'
        return tuple(Fault(name, told, "leave it out") for name, value in given.items() if value is not None)
    examples = {"catch_up_at_most": "catch_up_at_most=100", "catch_up_pace": "catch_up_pace=minutes(1)"}
    faults = [
        Fault(name, 'must be decided with catch_up="all"', examples[name])
        for name, value in given.items()
        if value is None
    ]
    if decisions.catch_up_at_most is not None:
        faults += number_faults("catch_up_at_most", decisions.catch_up_at_most, 1, MOST_CAUGHT_UP, whole=True)
    if decisions.catch_up_pace is not None:
        faults += duration_faults("catch_up_pace", decisions.catch_up_pace)
    return tuple(faults)


def _account_faults(decisions: Decisions) -> tuple[Fault, ...]:
    if decisions.overlap_by != "account" or decisions.overlap not in {"skip", "queue_one", "cancel_previous"}:
        return ()
    told = 'is "account", and only occurrences that run beside one another have accounts that wait'
    return (Fault("overlap_by", told, 'overlap="allow" with it, or overlap_by="job"'),)


def _progress_faults(decisions: Decisions) -> tuple[Fault, ...]:
    if decisions.no_progress_within is None:
        return ()
    return duration_faults("no_progress_within", decisions.no_progress_within, minimum=timedelta(seconds=1))


def to_paste(missing: tuple[str, ...]) -> tuple[Fault, ...]:
    """Give the fault of leaving decisions out, with a block to paste."""
    if not missing:
        return ()
    names = ", ".join(missing)
    return (Fault(names, f"must be decided, and has no default. Paste this and choose:\n{DECISIONS_TO_PASTE}"),)
