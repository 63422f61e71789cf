"""The decisions about *when* that every job must make, the waits between tries, and durations to write them with."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, get_args

from shared.declaration import Fault, keep_faults
from shared.explained import explain_mistakes, undecided_names
from shared.job_faults import duration_faults, number_faults, one_of

CatchUp = Literal["latest", "skip"]
Overlap = Literal["skip"]

DECISIONS_TO_PASTE = """\
# from shared.job import Decisions, hours, minutes
decisions=Decisions(
    catch_up="latest",            # the fleet was down when it was due: "latest" runs the last instant, "skip" none
    catch_up_within=hours(20),    # an instant later than this is recorded as missed, and not run
    overlap="skip",               # the occurrence before still runs: this one is recorded as skipped
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
    """What must be decided and has no default: leaving one out is refused with a block to paste."""

    catch_up: CatchUp
    catch_up_within: timedelta
    overlap: Overlap
    start_within: timedelta
    finish_within: timedelta
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
        )


def to_paste(missing: tuple[str, ...]) -> tuple[Fault, ...]:
    """Give the fault of leaving decisions out, with a block to paste."""
    if not missing:
        return ()
    names = ", ".join(missing)
    return (Fault(names, f"must be decided, and has no default. Paste this and choose:\n{DECISIONS_TO_PASTE}"),)
