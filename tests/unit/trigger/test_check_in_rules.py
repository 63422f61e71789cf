"""What each check-in does in each state, by the run that has the occurrence: the whole table."""

import pytest

from schemas.states import OccurrenceState
from trigger.check_in_rules import Event, Ruling, ruled

START, TAKE_OVER, AGAIN, END = Ruling.START, Ruling.TAKE_OVER, Ruling.AGAIN, Ruling.END
KNOWN, OVER, ANOTHER = Ruling.KNOWN, Ruling.OVER, Ruling.ANOTHER_RUN
EVENTS: tuple[Event, ...] = ("start", "success", "fail")

# By state: what start, success and fail do; first for the run that has it, then for another.
TABLE = {
    "expected": ((START, START, START), (START, START, START)),
    "claimed": ((KNOWN, END, END), (TAKE_OVER, ANOTHER, ANOTHER)),
    "succeeded": ((KNOWN, KNOWN, OVER), (OVER, KNOWN, OVER)),
    "failed": ((KNOWN, AGAIN, KNOWN), (AGAIN, AGAIN, KNOWN)),
    "cancelled": ((OVER, OVER, OVER), (AGAIN, OVER, OVER)),
    **dict.fromkeys(("missed", "skipped", "coalesced", "running", "partial"), ((OVER,) * 3, (OVER,) * 3)),
}


@pytest.mark.parametrize("state", list(OccurrenceState))
@pytest.mark.parametrize(("event", "place"), [(event, place) for place, event in enumerate(EVENTS)])
def test_each_check_in_in_each_state(state: OccurrenceState, event: Event, place: int) -> None:
    own, others = TABLE[state]
    for run, has_it in (("a", "a"), ("a", None), (None, "a"), (None, None)):
        assert ruled(event, run, state, has_it) is own[place], "a run that nobody names may be any"
    assert ruled(event, "b", state, "a") is others[place]


@pytest.mark.parametrize("state", ["claimed", "failed", "cancelled"])
def test_a_start_that_comes_again_takes_nothing_back(state: str) -> None:
    assert ruled("start", "a", state, "b", started_before=True) is ANOTHER
    assert ruled("start", "a", state, "b", started_before=False) in {TAKE_OVER, AGAIN}


def test_a_late_success_mends_a_failure_whoever_has_it() -> None:
    assert ruled("success", "a", "failed", "b", started_before=True) is AGAIN
