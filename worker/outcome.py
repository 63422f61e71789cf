"""What became of one call of a job's code: every way in which it can end, turned into one value at one place."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from shared.calls import GiveUp, Handled, NothingToDo, RetryLater
from shared.decisions import Backoff
from shared.masking import mask, text_of

LONGEST_ERROR = 2000
LONGEST_CLASS = 200
LONGEST_WAIT = timedelta(days=30)
NOT_REPORTED = "not_reported"
TIMEOUT = "timeout"


class Result(StrEnum):
    """How the ledger row moves on."""

    SUCCEEDED = "succeeded"
    NOTHING_TO_DO = "nothing_to_do"
    RETRY = "retry"
    FAILED = "failed"
    # Not the account's own fault: tried again alone, and no try is charged.
    UNTRIED = "untried"
    # It waits until it is done in an earlier occurrence, and no try is charged.
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one account, with the class and text of its error and the wait before its next try."""

    result: Result
    error_class: str | None = None
    error: str | None = None
    wait: timedelta = timedelta(0)

    @property
    def charged(self) -> int:
        """How many tries the account is charged: one where its code was run."""
        return 0 if self.result in {Result.UNTRIED, Result.BLOCKED} else 1


SUCCEEDED = Outcome(Result.SUCCEEDED)
NOTHING = Outcome(Result.NOTHING_TO_DO)
UNTRIED = Outcome(Result.UNTRIED)


class TimedOut(Exception):
    """A handler did not end within its timeout."""


class NotReported(Exception):
    """A set-based handler ended well and did not name the account: its statement may have left it out."""


@dataclass(frozen=True, slots=True)
class Tries:
    """What decides whether there is another try: how many are allowed, and the waits between them.

    `chance` gives a number from 0 to 1 for the jitter.
    """

    allowed: int
    backoff: Backoff

    def after(self, error: BaseException, attempt: int, chance: float) -> Outcome:
        """Decide what follows on the failure of try number `attempt` (1 for the first)."""
        if isinstance(error, NothingToDo):
            return NOTHING
        error_class, text = class_of(error), clean(text_of(error), LONGEST_ERROR)
        if isinstance(error, GiveUp) or attempt >= self.allowed:
            return Outcome(Result.FAILED, error_class, text)
        wait = error.after if isinstance(error, RetryLater) else self.wait(attempt, chance)
        return Outcome(Result.RETRY, error_class, text, min(max(wait, timedelta(0)), LONGEST_WAIT))

    def wait(self, attempt: int, chance: float) -> timedelta:
        """Give the wait after try number `attempt`: exponential, bounded, shortened by up to the jitter."""
        backoff = self.backoff
        # Beyond this exponent the bound has been reached long ago, and a float would overflow.
        growth = backoff.factor ** min(attempt - 1, 60)
        grown = min(backoff.first.total_seconds() * growth, backoff.limit.total_seconds())
        return timedelta(seconds=grown * (1 - backoff.jitter * chance))


def class_of(error: BaseException) -> str:
    """Name an error's class for the report: the reason of a `GiveUp`'s class is its own name, as for any other."""
    if isinstance(error, TimedOut):
        return TIMEOUT
    if isinstance(error, NotReported):
        return NOT_REPORTED
    return clean(type(error).__name__, LONGEST_CLASS)


def clean(text: str, longest: int) -> str:
    """Make any text fit for a table: no secret, no NUL, no lone surrogate, at most `longest` characters."""
    # Masked before it is cut: a part of a secret would not be known for one.
    fit = (
        mask(text[: 4 * longest])[: longest + 1]
        .encode("utf-8", "backslashreplace")
        .decode("utf-8")
        .replace("\x00", "\\x00")
    )
    return fit if len(fit) <= longest else fit[: longest - 1] + "…"


def of_chunk(handled: object, accounts: Iterable[str]) -> dict[str, BaseException | Outcome]:
    """Read what a set-based handler says of each of its accounts: an outcome, or the error that it stands for.

    An account that it names nowhere is `NotReported`. Raises TypeError when it gave anything but a `Handled`, or named
    an account that it was not given.
    """
    if not isinstance(handled, Handled):
        problem = f"a set-based handler gives a Handled, not {type(handled).__name__}"
        raise TypeError(problem)
    given = tuple(accounts)
    read: dict[str, BaseException | Outcome] = {
        account: NotReported("the handler did not name it") for account in given
    }
    said: tuple[tuple[str, BaseException | Outcome], ...] = (
        *((account, SUCCEEDED) for account in handled.done),
        *((account, NOTHING) for account in handled.nothing_to_do),
        *((account, Failed(reason)) for account, reason in handled.failed.items()),
    )
    for account, outcome in said:
        if account not in read:
            problem = f"the handler named an account that it was not given: {account[:80]!r}"
            raise TypeError(problem)
        read[account] = outcome
    return read


class Failed(Exception):
    """A set-based handler named the account as failed, with the reason."""
