from datetime import UTC, datetime, timedelta

import pytest

from shared.decisions import CatchUp, Decisions, hours, minutes
from trigger.catch_up import CaughtUp, Due, catch_up
from trigger.overlap import Decided, without_overlap

NOW = datetime(2026, 8, 25, 12, 0, tzinfo=UTC)


def due(*hours_ago: float, covered_by: int | None = None) -> list[Due]:
    return [Due(number, NOW - timedelta(hours=ago), covered_by) for number, ago in enumerate(hours_ago, 1)]


def decisions(policy: CatchUp) -> Decisions:
    return Decisions(
        catch_up=policy, catch_up_within=hours(5), overlap="skip", start_within=minutes(30), finish_within=hours(1)
    )


def ids(found: tuple[Due, ...]) -> list[int]:
    return [one.id for one in found]


@pytest.mark.parametrize(
    ("policy", "ago", "run", "coalesced", "missed", "late"),
    [
        ("latest", [], None, [], [], []),
        ("latest", [0], 1, [], [], []),
        ("latest", [0.1], 1, [], [], []),
        ("latest", [5], 1, [], [], []),
        ("latest", [5.001], None, [], [1], []),
        ("latest", [4, 2, 0.1], 3, [1, 2], [], []),
        ("latest", [9, 7, 4, 2], 4, [3], [1, 2], []),
        ("latest", [9, 8, 7], None, [], [1, 2, 3], []),
        ("skip", [0.1], 1, [], [], []),
        ("skip", [0.5], 1, [], [], []),
        ("skip", [0.6], None, [], [], [1]),
        ("skip", [4, 2, 0.1], 3, [], [], [1, 2]),
        ("skip", [9, 4, 0.2, 0.1], 4, [3], [1], [2]),
        ("skip", [9, 4], None, [], [1], [2]),
    ],
)
def test_each_due_instant_has_one_end(
    policy: CatchUp, ago: list[float], run: int | None, coalesced: list[int], missed: list[int], late: list[int]
) -> None:
    found = catch_up(due(*ago), decisions(policy), NOW)
    assert (found.run and found.run.id) == run
    assert (ids(found.coalesced), ids(found.missed), ids(found.late)) == (coalesced, missed, late)


def test_an_instant_whose_time_a_later_occurrence_has_run_goes_into_that_one() -> None:
    old = due(9, 3, covered_by=77)
    [new] = due(0.1)
    found = catch_up([*old, new], decisions("latest"), NOW)
    assert found == CaughtUp(run=new, covered=tuple(old))


def test_nothing_is_coalesced_into_an_occurrence_that_is_skipped() -> None:
    first, second, third = due(4, 2, 0.1)
    caught_up = catch_up([first, second, third], decisions("latest"), NOW)
    assert without_overlap(caught_up, "skip", active=False) == Decided(caught_up)
    assert without_overlap(caught_up, "skip", active=True) == Decided(CaughtUp(), (first, second, third))
