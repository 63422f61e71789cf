from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.decisions import CatchUp, Decisions, hours, minutes
from trigger.catch_up import CaughtUp, Due, catch_up, must_pause

NOW = datetime(2026, 8, 25, 12, 0, tzinfo=UTC)


def due(*hours_ago: float, covered_by: int | None = None) -> list[Due]:
    return [
        Due(number, NOW - timedelta(hours=ago), NOW - timedelta(hours=ago), covered_by)
        for number, ago in enumerate(hours_ago, 1)
    ]


def decisions(policy: CatchUp, **more: Any) -> Decisions:
    if policy == "all":
        more = {"catch_up_at_most": 3, "catch_up_pace": minutes(1)} | more
    return Decisions(
        catch_up=policy,
        catch_up_within=hours(5),
        overlap="skip",
        start_within=minutes(30),
        finish_within=hours(1),
        **more,
    )


def ids(found: tuple[Due, ...]) -> list[int]:
    return [one.id for one in found]


@pytest.mark.parametrize(
    ("policy", "ago", "turns", "coalesced", "missed", "late", "beyond"),
    [
        ("latest", [], [], [], [], [], []),
        ("latest", [0], [1], [], [], [], []),
        ("latest", [0.1], [1], [], [], [], []),
        ("latest", [5], [1], [], [], [], []),
        ("latest", [5.001], [], [], [1], [], []),
        ("latest", [4, 2, 0.1], [3], [1, 2], [], [], []),
        ("latest", [9, 7, 4, 2], [4], [3], [1, 2], [], []),
        ("latest", [9, 8, 7], [], [], [1, 2, 3], [], []),
        ("skip", [0.1], [1], [], [], [], []),
        ("skip", [0.5], [1], [], [], [], []),
        ("skip", [0.6], [], [], [], [1], []),
        ("skip", [4, 2, 0.1], [3], [], [], [1, 2], []),
        ("skip", [9, 4, 0.2, 0.1], [4], [3], [1], [2], []),
        ("skip", [9, 4], [], [], [1], [2], []),
        ("all", [], [], [], [], [], []),
        ("all", [0.1], [1], [], [], [], []),
        ("all", [4, 2, 0.1], [1, 2, 3], [], [], [], []),
        ("all", [4, 3, 2, 1, 0.1], [3, 4, 5], [], [], [], [1, 2]),
        ("all", [9, 8, 4, 3, 2, 1], [4, 5, 6], [], [1, 2], [], [3]),
    ],
)
def test_each_due_instant_has_one_end_or_its_turn(
    policy: CatchUp,
    ago: list[float],
    turns: list[int],
    coalesced: list[int],
    missed: list[int],
    late: list[int],
    beyond: list[int],
) -> None:
    found = catch_up(due(*ago), decisions(policy), NOW)
    assert ids(found.turns) == turns
    assert (ids(found.coalesced), ids(found.missed), ids(found.late)) == (coalesced, missed, late)
    assert ids(found.beyond) == beyond


@pytest.mark.parametrize("policy", ["latest", "all"])
def test_an_instant_whose_time_a_later_occurrence_has_run_goes_into_that_one(policy: CatchUp) -> None:
    old = due(9, 3, covered_by=77)
    [new] = due(0.1)
    found = catch_up([*old, new], decisions(policy), NOW)
    assert found == CaughtUp(turns=(new,), covered=tuple(old))


def test_one_that_was_made_to_wait_is_late_from_the_end_of_its_wait() -> None:
    long_ago = NOW - timedelta(hours=9)
    waits = Due(1, long_ago, long_ago, waited_until=NOW)
    freed = Due(1, long_ago, long_ago, waited_until=NOW - timedelta(hours=5))
    forgotten = Due(1, long_ago, long_ago, waited_until=NOW - timedelta(hours=6))
    assert catch_up([waits], decisions("latest"), NOW).turns == (waits,)
    assert catch_up([freed], decisions("latest"), NOW).turns == (freed,)
    assert catch_up([forgotten], decisions("latest"), NOW).missed == (forgotten,)
    assert catch_up([waits], decisions("skip"), NOW).turns == (waits,)
    assert catch_up([freed], decisions("skip"), NOW).late == (freed,)


def test_only_what_is_caught_up_is_held_to_the_pace() -> None:
    paced, just_now = decisions("all"), NOW - timedelta(seconds=59)
    assert must_pause(due(2), paced, NOW, just_now)
    assert must_pause(due(0.2, 0.1), paced, NOW, just_now)
    assert not must_pause(due(0.1), paced, NOW, just_now)
    assert not must_pause(due(2), paced, NOW, NOW - timedelta(minutes=1))
    assert not must_pause(due(2), paced, NOW, None)
    assert not must_pause(due(2), decisions("latest"), NOW, just_now)
