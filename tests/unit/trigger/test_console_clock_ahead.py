"""The next clock change that does something to a job: which, and what `preview` says of the instants around it."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.exclusions import Between, Weekdays
from shared.schedule import Cron
from shared.schedule_every import Every
from shared.schedule_except import Except
from shared.schedule_instants import Instants
from shared.schedule_protocol import Schedule
from shared.timing import Timing
from trigger.console.clock_ahead import ClockAhead, clock_ahead
from trigger.preview import preview

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SPRING = datetime(2027, 3, 28, 1, 0, tzinfo=UTC)
AUTUMN = datetime(2027, 10, 31, 1, 0, tzinfo=UTC)


def ahead(schedule: Schedule, now: datetime = NOW) -> ClockAhead | None:
    return clock_ahead(Timing("nightly", schedule), now)


def found(schedule: Schedule, now: datetime = NOW) -> ClockAhead:
    one = ahead(schedule, now)
    assert one is not None
    return one


def test_a_time_that_clocks_leave_out_is_told() -> None:
    one = found(Cron("30 2 * * *", "Europe/Berlin", "skip", "first"))
    assert (one.change.instant, one.zone, one.by) == (SPRING, "Europe/Berlin", timedelta(hours=1))
    assert one.rows[0].scheduled_at is None
    assert one.rows[0].note == "clocks go forward: 02:30 does not exist, left out (gap=skip)"


def test_a_time_that_happens_twice_is_told() -> None:
    one = found(Cron("30 2 * * *", "Europe/Berlin", "skip", "both"), SPRING + timedelta(days=1))
    assert one.change.instant == AUTUMN
    assert [row.note for row in one.rows[:2]] == [
        "clocks go back: 02:30 happens twice, first of two runs (fold=both)",
        "clocks go back: 02:30 happens twice, second of two runs (fold=both)",
    ]


@pytest.mark.parametrize("text", ["0 9 * * *", "0 9 * * 1", "0 9 1 * *"])
def test_a_time_that_only_moves_in_utc_is_told_of_the_first_run_after(text: str) -> None:
    one = found(Cron(text, "Europe/Berlin", "skip", "first"))
    assert one.change.instant == SPRING
    assert [row.note for row in one.rows] == ["clocks went forward by 1:00:00 since the run before"]
    assert datetime.fromisoformat(str(one.rows[0].scheduled_at)) > SPRING


def test_of_very_many_rows_the_first_are_given_and_the_others_counted() -> None:
    one = found(Cron("* * * * *", "Europe/Berlin", "skip", "both"), SPRING + timedelta(days=1))
    assert (len(one.rows), one.more) == (4, 116), "an hour of minutes, twice"


@pytest.mark.parametrize(
    "schedule",
    [
        Cron("30 2 * * *"),
        Cron("30 2 * * *", "Asia/Tokyo", "skip", "first"),
        Every(minutes=15),
        Instants(["2027-03-28T01:00Z"]),
        Except(Every(hours=1), [Weekdays(["sun"])], zone="Europe/Berlin"),
    ],
)
def test_where_clocks_move_nothing_there_is_none(schedule: Schedule) -> None:
    assert ahead(schedule) is None


def test_a_change_on_days_that_are_left_out_is_told_of_what_runs_behind_them() -> None:
    nightly = Cron("30 2 * * *", "Europe/Berlin", "next_valid", "first")
    closed = Except(nightly, [Between("2027-03-20", "2027-04-10")])
    one = found(closed)
    assert one.change.instant == SPRING
    notes = [row.note for row in one.rows]
    assert not any(note.startswith("left out: ") and "clocks" not in note for note in notes), "a calendar is no clock"
    assert any("clocks went forward" in note for note in notes)


@pytest.mark.parametrize("text", ["30 2 * * *", "0 9 * * *", "0 * * * *", "*/20 1-3 * * *"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo", "America/New_York"])
def test_the_rows_are_those_of_a_preview_of_the_whole_time(text: str, zone: str) -> None:
    timing = Timing("nightly", Cron(text, zone, "shift", "both"))
    one = clock_ahead(timing, NOW)
    assert one is not None
    whole = [
        row for row in preview(timing, NOW, one.change.instant + timedelta(days=3), 100_000) if "clocks " in row.note
    ]
    assert list(one.rows) == whole[: len(one.rows)]
    assert len(one.rows) + one.more == len(whole)
