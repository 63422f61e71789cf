"""The report on an occurrence's row, and the one place that decides how an occurrence ended."""

from datetime import datetime
from typing import Literal

import msgspec

from schemas.states import OccurrenceState

REPORT_VERSION = 1
EXAMPLES_PER_CLASS = 10
CLASSES_KEPT = 10

Ending = Literal["cancel", "deadline", "fan_out"]


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many accounts ended how; `total` is their sum."""

    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    cancelled: int = 0

    @property
    def total(self) -> int:
        """All accounts of the occurrence."""
        return self.succeeded + self.failed + self.dead + self.cancelled


class ErrorClass(msgspec.Struct, frozen=True, kw_only=True):
    """Accounts that ended with one class of error: how many, in which state, a few of them, and one message."""

    error_class: str
    state: str
    accounts: int
    examples: tuple[str, ...]
    message: str


class Durations(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds from an account's last start to its end, over the accounts that started."""

    median: float
    p95: float
    p99: float
    longest: float


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """How one earlier generation of the occurrence had ended, with its first CLASSES_KEPT classes of error."""

    generation: int
    state: str
    closed_at: datetime
    counts: Counts
    error_classes: tuple[ErrorClass, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator reads in the morning."""

    version: int = REPORT_VERSION
    counts: Counts
    nothing_to_do: int = 0
    retries: int = 0
    error_classes: tuple[ErrorClass, ...] = ()
    untouched_examples: tuple[str, ...] = ()
    durations: Durations | None = None
    first_account_at: datetime | None = None
    last_account_at: datetime | None = None
    generations: tuple[Generation, ...] = ()


def ended(counts: Counts, ending: Ending | None, partial_ok: float) -> OccurrenceState:
    """Decide the terminal state from the counts, from what ended the dispatch early, and from `partial_ok`.

    `partial_ok` is the share of accounts, 0 to 1, that may fail or die while the occurrence still counts as succeeded.
    """
    match ending:
        case "cancel":
            return OccurrenceState.CANCELLED
        case "fan_out":
            return OccurrenceState.FAILED
        case "deadline":
            return OccurrenceState.PARTIAL
        case None:
            pass
    unsuccessful = counts.failed + counts.dead + counts.cancelled
    if unsuccessful == 0 or unsuccessful <= partial_ok * counts.total:
        return OccurrenceState.SUCCEEDED
    return OccurrenceState.PARTIAL if counts.succeeded else OccurrenceState.FAILED
