"""A rate: so many at once, and as many again over its time."""

from trigger.api_limits import Rate


class Clock:
    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_a_burst_is_let_through_and_what_follows_is_told_how_long_to_wait() -> None:
    clock = Clock()
    rate = Rate(3, 60.0, clock)
    assert [rate.wait("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert rate.wait("a") == 20.0
    assert rate.wait("b") == 0.0
    clock.seconds += 20.0
    assert rate.wait("a") == 0.0
    assert rate.wait("a") == 20.0


def test_what_is_refused_costs_nothing_and_rest_saves_no_more_than_a_burst() -> None:
    clock = Clock()
    rate = Rate(2, 10.0, clock)
    waits = [rate.wait("a") for _ in range(50)]
    assert waits[-1] == 5.0
    clock.seconds += 3600.0
    assert [rate.wait("a") for _ in range(3)] == [0.0, 0.0, 5.0]


def test_each_name_may_have_its_own_rate() -> None:
    clock = Clock()
    rate = Rate(2, 60.0, clock)
    assert [rate.wait("few", 1) for _ in range(2)] == [0.0, 60.0]
    assert [rate.wait("many", 5) for _ in range(5)] == [0.0] * 5
