"""Schedules: what must be decided, how wall times are placed when clocks change, and what holds for every schedule."""

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone
from time import process_time
from typing import Any

import pytest

from shared.declaration import collecting_faults
from shared.errors import DeclarationError
from shared.schedule import Cron, Fold, Gap, place
from shared.zones import find_zone

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
NIGHTLY = Cron("0 2 * * *", zone="UTC")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def wall(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Tokyo", "Etc/UTC", "Etc/GMT+2"])
def test_a_zone_other_than_utc_must_name_both_policies(zone: str) -> None:
    with pytest.raises(DeclarationError) as refusal:
        Cron("0 2 * * *", zone)
    gap, fold = refusal.value.faults
    assert (gap.place, gap.valid) == ("schedule gap", "skip, next_valid, shift")
    assert (fold.place, fold.valid) == ("schedule fold", "first, second, both")
    assert repr(zone) in gap.problem


def test_all_faults_of_a_schedule_are_told_at_once() -> None:
    with pytest.raises(DeclarationError) as refusal:
        Cron("61 24 * *  FUN", "Europe/Berln", gap="next", fold=None)  # type: ignore[arg-type] # the fault under test
    assert [fault.place for fault in refusal.value.faults] == [
        "cron text '61 24 * *  FUN', minute",
        "cron text '61 24 * *  FUN', hour",
        "cron text '61 24 * *  FUN', day-of-week",
        "zone 'Europe/Berln'",
        "schedule gap",
        "schedule fold",
    ]
    assert "did you mean next_valid?" in refusal.value.faults[4].problem
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)  # noqa: S301 - made in this line


def test_while_modules_are_loaded_faults_are_kept_and_using_the_schedule_raises() -> None:
    with collecting_faults():
        faulty = Cron("0 25 * * *", "UTC")
    assert [str(fault) for fault in faulty.faults] == [
        "cron text '0 25 * * *', hour: '25' is outside 0-23; valid: *, 0-23, ranges, lists, steps"
    ]
    with pytest.raises(DeclarationError, match="25"):
        faulty.next_after(utc("2026-01-01"))
    assert NIGHTLY.faults == ()


@pytest.mark.parametrize("text", ["30 2 * 3 0#2", "* 2 * 3 0#2"])
def test_a_schedule_that_the_clocks_always_leave_out_is_refused(text: str) -> None:
    began = process_time()
    with pytest.raises(DeclarationError, match=r"never fires .*New_York .* gap is skip"):
        Cron(text, "America/New_York", gap="skip", fold="first")
    assert process_time() - began < 1
    moved = Cron(text, "America/New_York", gap="next_valid", fold="first")
    assert moved.next_after(utc("2026-01-01")) == utc("2026-03-08T07:00")


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(ValueError, match="after has no zone"):
        NIGHTLY.instants(wall("2026-01-01"), utc("2026-01-02"))
    with pytest.raises(ValueError, match="until has no zone"):
        NIGHTLY.instants(utc("2026-01-01"), wall("2026-01-02"))
    with pytest.raises(ValueError, match="has no zone"):
        NIGHTLY.next_after(wall("2026-01-01"))
    with pytest.raises(ValueError, match="has no zone"):
        NIGHTLY.previous_before(wall("2026-01-01"))
    with pytest.raises(ValueError, match="has no zone"):
        NIGHTLY.local(wall("2026-01-01"))


def test_a_window_is_open_at_its_start_and_closed_at_its_end() -> None:
    assert list(NIGHTLY.instants(utc("2026-01-01T02:00"), utc("2026-01-02T02:00"))) == [utc("2026-01-02T02:00")]
    assert list(NIGHTLY.instants(utc("2026-01-02T02:00"), utc("2026-01-02T02:00"))) == []
    assert list(NIGHTLY.instants(utc("2026-01-03"), utc("2026-01-01"))) == []
    assert NIGHTLY.next_after(utc("2026-01-01T02:00")) == utc("2026-01-02T02:00")
    assert NIGHTLY.previous_before(utc("2026-01-02T02:00")) == utc("2026-01-01T02:00")


def test_fractions_of_a_second_never_reach_an_instant() -> None:
    fraction = timedelta(microseconds=1)
    assert NIGHTLY.next_after(utc("2026-01-01T02:00") - fraction) == utc("2026-01-01T02:00")
    assert NIGHTLY.next_after(utc("2026-01-01T02:00") + fraction) == utc("2026-01-02T02:00")
    assert NIGHTLY.previous_before(utc("2026-01-01T02:00") + fraction) == utc("2026-01-01T02:00")


def test_the_zone_of_an_argument_does_not_matter() -> None:
    elsewhere = timezone(timedelta(hours=5, minutes=45))
    assert NIGHTLY.next_after(utc("2026-01-01T03:00").astimezone(elsewhere)) == utc("2026-01-02T02:00")


def test_the_ends_of_the_calendar_are_no_error() -> None:
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert NIGHTLY.previous_before(first) is None
    assert next(NIGHTLY.instants(first, last)).year == 100
    with pytest.raises(DeclarationError, match="never fires after 9900"):
        NIGHTLY.next_after(last)


@pytest.mark.parametrize(
    ("at", "gap", "fold", "expected"),
    [
        ("2025-03-09T02:30", "skip", "first", []),
        ("2025-03-09T02:30", "next_valid", "first", ["2025-03-09T07:00"]),
        ("2025-03-09T02:30", "shift", "first", ["2025-03-09T07:30"]),
        ("2025-03-09T02:00", "next_valid", "first", ["2025-03-09T07:00"]),
        ("2025-03-09T03:00", "skip", "first", ["2025-03-09T07:00"]),
        ("2025-11-02T01:30", "skip", "first", ["2025-11-02T05:30"]),
        ("2025-11-02T01:30", "skip", "second", ["2025-11-02T06:30"]),
        ("2025-11-02T01:30", "skip", "both", ["2025-11-02T05:30", "2025-11-02T06:30"]),
        ("2025-11-02T02:00", "skip", "both", ["2025-11-02T07:00"]),
    ],
)
def test_a_wall_time_is_placed_as_the_policies_say(at: str, gap: Gap, fold: Fold, expected: list[str]) -> None:
    placed = place(wall(at), find_zone("America/New_York"), gap, fold)
    assert placed == [utc(instant) for instant in expected]


def test_a_definition_is_the_same_for_the_same_meaning() -> None:
    written = Cron("  @DAILY ", "UTC", gap="skip", fold="both")
    assert written.definition() == {"text": "0 0 * * *", "zone": "UTC", "gap": None, "fold": None}
    assert written.definition() == Cron("00 0 * * *").definition()
    berlin = Cron("0 2 * * MON-FRI", "Europe/Berlin", gap="next_valid", fold="first")
    assert berlin.definition() == {"text": "0 2 * * 1-5", "zone": "Europe/Berlin", "gap": "next_valid", "fold": "first"}
    assert Cron.from_definition(berlin.definition()).definition() == berlin.definition()


@pytest.mark.parametrize(
    "definition",
    [
        {},
        {"text": "0 2 * * *"},
        {"text": "0 2 * * *", "zone": "UTC", "gap": None, "fold": None, "calendar": None},
        {"text": None, "zone": "UTC", "gap": None, "fold": None},
        {"text": "0 2 * * *", "zone": None, "gap": None, "fold": None},
        {"text": "0 2 * * *", "zone": "Mars/Phobos", "gap": "skip", "fold": "both"},
        {"text": "0 2 * * *", "zone": "UTC", "gap": "jump", "fold": None},
    ],
)
def test_a_corrupt_definition_is_refused(definition: dict[str, str | None]) -> None:
    with pytest.raises(DeclarationError):
        Cron.from_definition(definition)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Cron("* * * * *", "Europe/Berlin", "skip", "first"), ["fold=first leaves a hole"]),
        (Cron("0 */2 * * *", "Europe/Berlin", "skip", "second"), ["fold=second leaves a hole"]),
        (Cron("30 * * * *", "Europe/Berlin", "next_valid", "both"), ["gap=next_valid adds a run"]),
        (Cron("*/15 * * * *", "Europe/Berlin", "next_valid", "both"), []),
        (Cron("0 2 * * *", "Europe/Berlin", "next_valid", "first"), []),
        (Cron("0 2 * * *", "Etc/GMT+2", "skip", "first"), ["Etc/GMT+2 is UTC-2"]),
        (Cron("* * * * *"), []),
    ],
    ids=str,
)
def test_what_is_valid_but_surprising_is_warned_about(schedule: Cron, words: list[str]) -> None:
    warnings = schedule.warnings()
    assert len(warnings) == len(words)
    assert all(word in str(warning) for word, warning in zip(words, warnings, strict=True))


def test_a_schedule_is_a_value() -> None:
    berlin = Cron("0 2 * * *", "Europe/Berlin", "skip", "first")
    assert pickle.loads(pickle.dumps(berlin)) == berlin == copy.deepcopy(berlin)  # noqa: S301 - made in this line
    assert len({berlin, Cron("0 2 * * *", "Europe/Berlin", "skip", "first")}) == 1
    assert berlin.local(utc("2026-07-01T00:00")).isoformat() == "2026-07-01T02:00:00+02:00"


def _least_time(work: Any) -> float:
    """Take the least of several measures of this process's own time, so that a busy machine does not fail a test."""
    measures = []
    for _ in range(5):
        began = process_time()
        work()
        measures.append(process_time() - began)
    return min(measures)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Apia"])
def test_planning_a_job_of_every_minute_is_quick(zone: str) -> None:
    minutely = Cron("* * * * *", zone, "next_valid", "both")
    after = utc("2026-10-31T12:00")
    assert _least_time(lambda: list(minutely.instants(after, after + DAY))) < 0.04
    assert _least_time(lambda: minutely.next_after(after)) < 0.01
    assert _least_time(lambda: minutely.previous_before(after)) < 0.01


@pytest.mark.parametrize("text", ["0 9 29 2 *", "0 0 * 2 1#5", "* * 29 2 *"])
def test_a_rare_job_is_found_quickly(text: str) -> None:
    rare = Cron(text, "Europe/Berlin", "skip", "first")
    assert _least_time(lambda: rare.next_after(utc("2072-03-01"))) < 0.1
    assert _least_time(lambda: rare.previous_before(utc("2072-02-01"))) < 0.1


def test_a_whole_missing_day_is_crossed_quickly() -> None:
    apia = Cron("* * 30 12 *", "Pacific/Apia", "skip", "first")
    began = process_time()
    assert apia.next_after(utc("2011-12-29")) == utc("2012-12-29T10:00")
    assert apia.previous_before(utc("2012-06-01")) == utc("2010-12-31T10:59") - timedelta(hours=1)
    assert process_time() - began < 1
