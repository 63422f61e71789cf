import pytest
import structlog

from shared import clock
from worker.elsewhere import NAMES_AT_MOST, REMEMBERED, Elsewhere


def test_what_another_worker_can_run_waits_longer_each_time_and_what_nobody_can_the_longest() -> None:
    elsewhere = Elsewhere("me", runnable=frozenset({"added"}))
    waits = [elsewhere.wait("added", "night", times) for times in (0, 1, 2, 5, 6, 999_999)]
    assert waits == [1, 2, 4, 32, 60, 60]
    assert elsewhere.wait("gone", "night", 0) == 60


def test_each_job_is_told_once_with_the_reason() -> None:
    elsewhere = Elsewhere("me", problems={"broken": "no module named x"}, runnable=frozenset({"added"}))
    with structlog.testing.capture_logs() as lines:
        for job in ("added", "broken", "added", "broken"):
            elsewhere.wait(job, "night", 0)
        for number in range(2 * NAMES_AT_MOST):
            elsewhere.wait(f"forged-{number}", "night", 0)
    assert [(line["job"], line["reason"], line["code"]) for line in lines[:2]] == [
        ("added", "not declared by this worker", "other live workers"),
        ("broken", "no module named x", "no live worker"),
    ]
    assert len(lines) == len(elsewhere.met) == NAMES_AT_MOST


def test_readiness_names_what_nobody_can_run_while_its_messages_come(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = Elsewhere("me", runnable=frozenset({"added"}))
    assert elsewhere.problem() is None
    elsewhere.wait("added", "night", 0)
    assert elsewhere.problem() is None, "another worker has the code"
    elsewhere.wait("gone", "night", 0)
    assert elsewhere.problem() == "messages wait, and no live worker has the code of: gone"
    later = clock.monotonic() + REMEMBERED.total_seconds() + 1
    monkeypatch.setattr(clock, "monotonic", lambda: later)
    assert elsewhere.problem() is None, "they have stopped coming"
