"""What the broker refused is told for a while, by place, and a queue that goes on refusing is asked anew."""

import pytest

from shared.broker import Outgoing, PublishFailed, PublishRefused
from shared.broker_outgoing import ANEW_SECONDS, REFUSAL_SECONDS, QueueRefused, Refusals

UNROUTABLE = PublishRefused("no queue", ambiguous=False)
FULL = QueueRefused("full", ambiguous=False)
LATE = PublishFailed("no confirm", ambiguous=True)


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr("shared.broker_outgoing.clock", moved)
    return moved


def to(key: str) -> Outgoing:
    return Outgoing("work", key, b"", "1", "", "", {})


def test_a_refusal_is_told_until_a_confirm_at_the_same_place_or_for_a_while(time: Clock) -> None:
    refusals = Refusals()
    refusals.note(to("a"), UNROUTABLE)
    refusals.note(to("b"), FULL)
    refusals.note(to("c"), LATE)
    assert refusals.problem() == "no queue; full"
    refusals.note(to("a"), None)
    assert refusals.problem() == "full"
    time.now += REFUSAL_SECONDS
    assert refusals.problem() is None


def test_a_queue_that_goes_on_refusing_is_asked_anew_again_and_again(time: Clock) -> None:
    refusals = Refusals()
    refusals.note(to("a"), UNROUTABLE)
    for _ in range(2):
        refusals.note(to("b"), FULL)
        assert not refusals.ask_anew()
        time.now += ANEW_SECONDS + 1
        assert refusals.ask_anew()
        assert not refusals.ask_anew()
    refusals.note(to("b"), FULL)
    refusals.note(to("b"), None)
    time.now += ANEW_SECONDS + 1
    assert not refusals.ask_anew()
