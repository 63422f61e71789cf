from datetime import UTC, datetime, timedelta

import pytest

from shared.decisions import CatchUp, Decisions, Overlap, hours, minutes
from trigger.catch_up import CaughtUp, Due
from trigger.overlap import Active, Decided, without_overlap

NOW = datetime(2026, 8, 25, 12, 0, tzinfo=UTC)
FIRST, SECOND, THIRD = (
    Due(number, NOW - timedelta(hours=4 - number), NOW - timedelta(hours=4 - number)) for number in (1, 2, 3)
)
LATEST = CaughtUp(turns=(THIRD,), coalesced=(FIRST, SECOND))
ALL = CaughtUp(turns=(FIRST, SECOND, THIRD))


def decisions(overlap: Overlap, catch_up: CatchUp = "latest") -> Decisions:
    return Decisions(
        catch_up=catch_up,
        catch_up_within=hours(5),
        overlap=overlap,
        start_within=minutes(30),
        finish_within=hours(1),
        catch_up_at_most=10 if catch_up == "all" else None,
        catch_up_pace=minutes(1) if catch_up == "all" else None,
    )


def active(hours_ago: float, *, is_late: bool = False, is_ending: bool = False) -> Active:
    since = NOW - timedelta(hours=hours_ago)
    return Active(9, since, "nightly:before", since, is_late, is_ending)


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "allow", "cancel_previous"])
def test_what_nobody_is_in_the_way_of_runs(overlap: Overlap) -> None:
    assert without_overlap(CaughtUp(), decisions(overlap), [active(5)]) == Decided()
    assert without_overlap(LATEST, decisions(overlap), []) == Decided(run=THIRD, coalesced=(FIRST, SECOND))
    assert without_overlap(ALL, decisions(overlap, "all"), []) == Decided(run=FIRST)


@pytest.mark.parametrize(
    ("overlap", "decided"),
    [
        ("skip", Decided(overlapping=(FIRST, SECOND, THIRD))),
        ("queue_one", Decided(waits=THIRD, coalesced=(FIRST, SECOND))),
        ("allow", Decided(run=THIRD, coalesced=(FIRST, SECOND))),
        ("cancel_previous", Decided(waits=THIRD, coalesced=(FIRST, SECOND), ended=(active(5),))),
    ],
)
def test_each_policy_has_its_way_with_an_instant_that_falls_due_meanwhile(overlap: Overlap, decided: Decided) -> None:
    assert without_overlap(LATEST, decisions(overlap), [active(5)]) == decided


@pytest.mark.parametrize(
    ("overlap", "decided"),
    [
        ("skip", Decided(overlapping=(FIRST, SECOND, THIRD))),
        ("queue_one", Decided(waits=THIRD, coalesced=(FIRST, SECOND))),
        ("allow", Decided(run=FIRST)),
        ("cancel_previous", Decided(waits=THIRD, coalesced=(FIRST, SECOND), ended=(active(5),))),
    ],
)
def test_what_falls_due_while_one_runs_in_time_is_no_catching_up(overlap: Overlap, decided: Decided) -> None:
    assert without_overlap(ALL, decisions(overlap, "all"), [active(5)]) == decided


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "cancel_previous"])
def test_what_awaits_its_turn_is_no_overlap(overlap: Overlap) -> None:
    policy = decisions(overlap, "all")
    assert without_overlap(ALL, policy, [active(3)]) == Decided(), "the first was due before the active one was claimed"
    assert without_overlap(ALL, policy, [active(5, is_late=True)]) == Decided(), "the active one is itself caught up"
    assert without_overlap(ALL, policy, [active(5), active(2)]) == Decided()


def test_an_end_is_requested_once() -> None:
    policy = decisions("cancel_previous")
    ending, live = active(5, is_ending=True), active(4)
    assert without_overlap(LATEST, policy, [ending]) == Decided(waits=THIRD, coalesced=(FIRST, SECOND))
    assert without_overlap(LATEST, policy, [live, ending]).ended == (live,)


def test_where_each_is_caught_up_all_wait_for_one_that_is_not_the_schedules() -> None:
    backfilled = Active(9, NOW, "nightly:before", NOW, is_late=True, is_scheduled=False)
    for overlap in ("skip", "queue_one", "cancel_previous"):
        found = without_overlap(ALL, decisions(overlap, "all"), [backfilled])
        assert found == Decided(waits=FIRST, also_wait=(SECOND, THIRD))
