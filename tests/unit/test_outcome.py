from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.occurrence import Identity
from shared.calls import GiveUp, Handled, NothingToDo, RetryLater, idempotency_key
from shared.decisions import Backoff
from tests.support.ledger import DUE
from worker.outcome import NOTHING, SUCCEEDED, Failed, NotReported, Result, TimedOut, Tries, clean, of_chunk

TRIES = Tries(3, Backoff(first=timedelta(seconds=10), factor=2, limit=timedelta(seconds=60), jitter=0.5))


@pytest.mark.parametrize(
    ("error", "attempt", "result", "error_class"),
    [
        (ValueError("x"), 1, Result.RETRY, "ValueError"),
        (ValueError("x"), 3, Result.FAILED, "ValueError"),
        (GiveUp("no"), 1, Result.FAILED, "GiveUp"),
        (RetryLater(after=timedelta(hours=1)), 2, Result.RETRY, "RetryLater"),
        (RetryLater(after=timedelta(hours=1)), 3, Result.FAILED, "RetryLater"),
        (NothingToDo(), 1, Result.NOTHING_TO_DO, None),
        (TimedOut("late"), 1, Result.RETRY, "timeout"),
        (NotReported("not named"), 3, Result.FAILED, "not_reported"),
        (SystemExit(1), 1, Result.RETRY, "SystemExit"),
    ],
)
def test_what_follows_on_a_failure(error: BaseException, attempt: int, result: Result, error_class: str | None) -> None:
    outcome = TRIES.after(error, attempt, 0.0)
    assert (outcome.result, outcome.error_class) == (result, error_class)


def test_waits_grow_are_bounded_and_are_shortened_by_the_jitter() -> None:
    assert [TRIES.wait(attempt, 0.0).total_seconds() for attempt in (1, 2, 3, 4, 5000)] == [10, 20, 40, 60, 60]
    assert TRIES.wait(1, 1.0).total_seconds() == 5
    assert TRIES.after(RetryLater(after=timedelta(seconds=-5)), 1, 0.0).wait == timedelta(0)


@given(st.text(st.characters(), max_size=3000), st.integers(1, 2000))
def test_any_text_becomes_one_that_a_table_can_hold(text: str, longest: int) -> None:
    fit = clean(text, longest)
    assert len(fit) <= longest
    assert "\x00" not in fit
    fit.encode()


def test_a_chunk_s_answer_is_read_for_each_account() -> None:
    said = of_chunk(Handled(done=["a"], failed={"b": "no plan"}, nothing_to_do=["c"]), ["a", "b", "c", "d"])
    assert (said["a"], said["c"]) == (SUCCEEDED, NOTHING)
    assert isinstance(said["b"], Failed)
    assert isinstance(said["d"], NotReported)
    with pytest.raises(TypeError, match="not given: 'z'"):
        of_chunk(Handled(done=["z"]), ["a"])
    with pytest.raises(TypeError, match="gives a Handled, not list"):
        of_chunk(["a"], ["a"])


def test_idempotency_keys_are_stable_and_never_shared() -> None:
    identity = Identity("charge", DUE)
    key = idempotency_key(identity, "a")
    assert key == idempotency_key(Identity("charge", DUE), "a")
    # A key that changed with a release would repeat every effect that a re-run touches.
    assert key == "80afa2a524ff57c796c12053525fd7f854f36ceeeaa10578a186e63bdd740ded"
    others = {
        idempotency_key(identity, "b"),
        idempotency_key(identity, "a", salt="x"),
        idempotency_key(Identity("charge", DUE + timedelta(days=1)), "a"),
        idempotency_key(Identity("charg", DUE), "a"),
        idempotency_key(Identity("charge", DUE), "é"),
        idempotency_key(Identity("charge", DUE), "e\u0301"),
    }
    assert len(others) == 6
    assert key not in others
    assert key.isascii()
