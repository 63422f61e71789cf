"""Intervals, instants and exclusions: what they say, what they refuse, and what holds for all of them."""

import copy
import pickle
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.calendars import read_calendar
from shared.declaration import FaultyDeclaration, collecting_faults
from shared.errors import DeclarationError
from shared.exclusions import Between, Calendar, Dates, Weekdays
from shared.schedule import Cron
from shared.schedule_definition import schedule_of
from shared.schedule_every import Every
from shared.schedule_except import Except
from shared.schedule_instants import Instants
from shared.schedule_protocol import Schedule

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
XMAS = Calendar("berlin", ["2026-12-25", "2026-12-26"])


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# A schedule of each kind, with something left out by each kind of exclusion.
SCHEDULES: list[Schedule] = [
    Every(minutes=15),
    Every(hours=7, minutes=1, seconds=3, anchor="2026-03-01T06:20+02:00"),
    Every(days=1),
    Instants(["2026-12-24T10:00Z", "2026-12-25T10:00Z", "2026-12-26T12:30:01+01:00"]),
    Except(Cron("0 2 * * *"), [Weekdays(["sun", "sat"]), XMAS]),
    Except(Cron("*/30 * * * *", "America/Havana", "next_valid", "both"), [Dates(["2025-11-02", "2026-03-08"])]),
    Except(Every(hours=5), [Between("2026-12-24", "2027-01-06")], zone="Asia/Tokyo"),
    Except(Instants(["2026-12-24T10:00Z", "2026-12-25T10:00Z", "2026-12-26T10:00Z"]), [Weekdays(["fri"])]),
    Except(Cron("30 1 * * *", "Pacific/Apia", "shift", "first"), [Dates(["2011-12-29", "2011-12-31"])]),
]
KINDS = st.sampled_from(SCHEDULES)
STARTS = st.sampled_from(["2025-11-01T20:00", "2026-03-07T20:00", "2026-12-23T00:00", "2011-12-28T00:00"])
INSTANTS = st.builds(lambda start, seconds: utc(start) + timedelta(seconds=seconds), STARTS, st.integers(0, 5 * 86_400))


@settings(max_examples=200, deadline=None)
@given(KINDS, st.lists(INSTANTS, min_size=3, max_size=3))
def test_instants_increase_and_windows_join_without_a_seam(schedule: Schedule, bounds: list[datetime]) -> None:
    first, middle, last = sorted(bounds)
    last = min(last, first + 4 * DAY)
    middle = min(middle, last)
    found = list(schedule.instants(first, last))
    assert all(earlier < later for earlier, later in pairwise(found))
    assert all(first < instant <= last and instant.tzinfo is UTC and not instant.microsecond for instant in found)
    assert found == [*schedule.instants(first, middle), *schedule.instants(middle, last)]
    assert found == [one.instant for one in schedule.named(first, last) if not one.left_out]


@settings(max_examples=200, deadline=None)
@given(KINDS, INSTANTS)
def test_next_and_previous_are_the_neighbours(schedule: Schedule, instant: datetime) -> None:
    upcoming, earlier = schedule.next_after(instant), schedule.previous_before(instant)
    if upcoming is None:
        assert not list(schedule.instants(instant, instant + 4000 * DAY))
    else:
        assert list(schedule.instants(instant, upcoming)) == [upcoming]
    if earlier is None:
        assert not list(schedule.instants(instant - 4000 * DAY, instant - SECOND))
    else:
        assert list(schedule.instants(earlier - SECOND, instant - SECOND)) == [earlier]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.description)
def test_a_definition_gives_the_same_schedule_again(schedule: Schedule) -> None:
    again = schedule_of(schedule.definition())
    assert again.definition() == schedule.definition()
    window = utc("2026-12-20T00:00"), utc("2027-01-10T00:00")
    assert list(again.named(*window)) == list(schedule.named(*window))
    assert copy.deepcopy(schedule) == pickle.loads(pickle.dumps(schedule)) == schedule  # noqa: S301 - made in this line


def test_a_definition_of_the_first_release_is_cron_text() -> None:
    old = {"text": "0 2 * * *", "zone": "UTC", "gap": None, "fold": None}
    assert schedule_of(old) == Cron("0 2 * * *")
    assert Cron("0 2 * * *").definition() == old, "or each job would change with this release"


@pytest.mark.parametrize(
    "definition",
    [
        {"kind": "lunar"},
        {"kind": "every", "seconds": 900},
        {"kind": "instants", "at": []},
        {"kind": "except", "schedule": {"kind": "every", "seconds": 9, "anchor": "2024-01-01T00:00:00Z"}},
        {"kind": "except", "schedule": {"text": "0 2 * * *", "zone": "UTC", "gap": None, "fold": None},
         "exclude": [{"kind": "moon"}], "zone": "UTC"},
        {"kind": "except", "schedule": {"text": "0 2 * * *", "zone": "UTC", "gap": None, "fold": None},
         "exclude": [{"kind": "weekdays"}], "zone": "UTC"},
    ],
)  # fmt: skip
def test_a_definition_that_cannot_be_read_is_refused(definition: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        schedule_of(definition)


def test_every_counts_from_its_anchor_and_by_default_falls_on_round_times() -> None:
    start = utc("2026-08-25T10:07")
    assert Every(minutes=15).next_after(start) == utc("2026-08-25T10:15")
    assert Every(days=7).next_after(start) == utc("2026-08-31T00:00"), "a Monday"
    assert Every(minutes=15, anchor="2026-01-01T00:04Z").next_after(start) == utc("2026-08-25T10:19")
    assert Every(minutes=15, anchor=utc("2199-01-01T00:04")).next_after(start) == utc("2026-08-25T10:19")
    assert Every(hours=1).definition() == Every(minutes=60).definition()
    assert Every(minutes=15).definition() == Every(minutes=15, anchor="2026-03-01T06:30Z").definition()


@given(st.integers(1, 100_000), st.integers(0, 10**9), st.integers(0, 10**9))
def test_every_never_drifts_however_long_nobody_looked(step: int, offset: int, down: int) -> None:
    anchor = utc("2024-01-01T00:00") + timedelta(seconds=offset)
    schedule = Every(seconds=step, anchor=anchor)
    upcoming = schedule.next_after(anchor + timedelta(seconds=down))
    assert upcoming is not None
    assert (upcoming - anchor) % timedelta(seconds=step) == timedelta(0)
    assert SECOND <= upcoming - (anchor + timedelta(seconds=down)) <= timedelta(seconds=step)


def test_a_day_of_every_is_24_hours_whatever_clocks_do() -> None:
    found = list(Every(days=1).instants(utc("2026-03-28T12:00"), utc("2026-03-31T12:00")))
    assert {later - earlier for earlier, later in pairwise(found)} == {DAY}


def test_instants_end() -> None:
    two = Instants(["2026-12-26T10:00Z", "2026-12-24T10:00Z"])
    assert two.next_after(utc("2026-12-24T10:00")) == utc("2026-12-26T10:00")
    assert two.next_after(utc("2026-12-26T10:00")) is None
    assert two.previous_before(utc("2026-12-24T10:00")) is None
    assert two.description == "2 instants, the last at 2026-12-26T10:00:00Z"


def test_what_is_left_out_is_named_with_what_leaves_it_out() -> None:
    schedule = Except(
        Cron("0 9 * * *", "Europe/Berlin", "skip", "first"),
        [Weekdays(["sun"]), XMAS, Between("2026-12-29", "2026-12-30"), Dates([date(2026, 12, 28)])],
    )
    told = {
        f"{one.instant:%d}": one.left_out for one in schedule.named(utc("2026-12-24T00:00"), utc("2026-12-31T12:00"))
    }
    assert told == {
        "24": "",
        "25": "calendar berlin",
        "26": "calendar berlin",
        "27": "sun",
        "28": "2026-12-28",
        "29": "2026-12-29 to 2026-12-30",
        "30": "2026-12-29 to 2026-12-30",
        "31": "",
    }
    assert schedule.next_after(utc("2026-12-24T12:00")) == utc("2026-12-31T08:00")
    assert schedule.previous_before(utc("2026-12-31T08:00")) == utc("2026-12-24T08:00")
    assert schedule.description == (
        "0 9 * * * Europe/Berlin except sun, calendar berlin, 2026-12-29 to 2026-12-30, 1 dates"
    )


def test_the_date_is_that_of_the_schedules_zone() -> None:
    tokyo = Cron("0 1 * * *", "Asia/Tokyo", "skip", "first")
    left_out = [one.left_out for one in Except(tokyo, [XMAS]).named(utc("2026-12-24T15:00"), utc("2026-12-25T17:00"))]
    assert left_out == ["calendar berlin", "calendar berlin"], "the 25th and 26th there, the 24th and 25th in UTC"
    hourly = Except(Every(hours=12), [XMAS], zone="Asia/Tokyo")
    assert [one.left_out != "" for one in hourly.named(utc("2026-12-24T11:00"), utc("2026-12-25T00:00"))] == [
        False,
        True,
    ]


def test_a_changed_calendar_is_another_definition() -> None:
    before, after = (
        Except(Every(days=1), [Calendar("berlin", days)]).definition() for days in (["2026-12-25"], ["2026-12-26"])
    )
    assert before["exclude"][0]["fingerprint"] != after["exclude"][0]["fingerprint"]
    assert XMAS.definition() == Calendar("berlin", [date(2026, 12, 26), date(2026, 12, 25), "2026-12-25"]).definition()


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (Every, "steps of no length"),
        (lambda: Every(minutes=-5), "minutes: is -5"),
        (lambda: Every(minutes=1.5), "minutes: is 1.5"),  # type: ignore[arg-type] # the fault under test
        (lambda: Every(days=4000), "days: is 4000|more than ten years"),
        (lambda: Every(minutes=5, anchor="2026-01-01T00:00"), "anchor: 2026-01-01T00:00:00 has no zone"),
        (lambda: Every(minutes=5, anchor="noon"), "anchor: 'noon' is not an instant"),
        (lambda: Every(minuts=5), "minuts: is not known"),  # type: ignore[call-arg] # the fault under test
        (lambda: Instants([]), "instants: are 0"),
        (lambda: Instants("2026-12-24T10:00Z"), "is no list of instants"),
        (lambda: Instants(["2026-12-24T10:00Z", "2026-12-24T11:00+01:00"]), "2026-12-24T10:00:00Z is given twice"),
        (lambda: Instants([datetime(2026, 1, 1)]), "has no zone"),  # noqa: DTZ001 - the fault under test
        (lambda: Instants(["2026-01-01T00:00:00.5Z"]), "not a whole second"),
        (lambda: Weekdays(["monday"]), "'monday' is no weekday; valid: mon, tue"),
        (lambda: Weekdays([]), "name no weekday"),
        (lambda: Dates("2026-12-25"), "valid: a list of dates"),
        (lambda: Dates(["2026-02-30"]), "'2026-02-30' is no date"),
        (lambda: Dates([datetime(2026, 1, 1, tzinfo=UTC)]), "is no date"),
        (lambda: Between("2026-12-26", "2026-12-25"), "before its first day"),
        (lambda: Between("2026-12-26"), "a day is left out"),  # type: ignore[call-arg] # the fault under test
        (lambda: Calendar("Berlin", ["2026-12-25"]), "calendar: is 'Berlin'"),
        (lambda: Calendar("berlin", []), "has 0 dates"),
        (lambda: Except(Cron("0 2 * * *"), []), "exclude: is"),
        (lambda: Except(Cron("0 2 * * *"), XMAS), "exclude: is Calendar"),  # type: ignore[arg-type] # the fault under test
        (lambda: Except(Cron("0 2 * * *"), ["2026-12-25"]), "exclude: holds"),  # type: ignore[list-item] # the fault
        (lambda: Except("0 2 * * *", [XMAS]), "schedule: is '0 2"),  # type: ignore[arg-type] # the fault under test
        (lambda: Except(Cron("0 2 * * *"), [XMAS], zone="Europe/Berlin"), "has its own; valid: UTC"),
        (lambda: Except(Every(days=1), [XMAS], zone="Berlin"), "zone 'Berlin'"),
        (lambda: Except(Cron("0 2 * * MON"), [Weekdays(["mon"])]), "never fires"),
        (lambda: Except(Instants(["2026-12-25T10:00Z"]), [XMAS]), "never fires"),
    ],
)
def test_a_faulty_declaration_says_what_is_wrong_and_is_kept_while_modules_load(declare: Any, words: str) -> None:
    with pytest.raises(FaultyDeclaration, match=words):
        declare()
    with collecting_faults():
        assert declare().faults


def test_a_schedule_whose_days_are_all_left_out_is_refused_soon() -> None:
    always = [Weekdays(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])]
    with pytest.raises(FaultyDeclaration, match="never fires"):
        Except(Cron("* * * * *", "Europe/Berlin", "skip", "both"), always)


def test_a_calendar_is_read_from_a_file_of_lines_or_of_json(tmp_path: Path) -> None:
    lines = tmp_path / "Berlin.txt"
    lines.write_text("\ufeff# days off\n2026-12-25 Christmas\n\n  2026-12-26\n", encoding="utf-8")
    array = tmp_path / "berlin.json"
    array.write_text('["2026-12-26", "2026-12-25"]', encoding="utf-8")
    assert read_calendar(lines) == read_calendar(array) == XMAS
    assert read_calendar(str(lines), "off").name == "off"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("off.txt", "2026-12-25\n24.12.2026\n", "line 2: '24.12.2026' is no date"),
        ("off.json", '["2026-12-25", 7]', "value 2: 7 is no date"),
        ("off.json", '{"days": []}', "holds no array"),
        ("off.json", "[", "Expecting value"),
        ("off.txt", "# nothing\n", "has 0 dates"),
        ("off.txt", "\x00", "is no date"),
        (".txt", None, "No such file"),
    ],
)
def test_a_calendar_file_that_cannot_be_read_is_a_fault_with_its_place(
    tmp_path: Path, name: str, text: str | None, words: str
) -> None:
    file = tmp_path / name
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(FaultyDeclaration, match=words):
        read_calendar(file, "off")
    with collecting_faults():
        faulty = Except(Every(days=1), [read_calendar(file, "off")])
    assert [fault for fault in faulty.faults if words in str(fault)]


def test_a_calendar_takes_what_a_library_of_holidays_gives() -> None:
    """Such libraries give mappings from dates to names."""
    assert Calendar("berlin", {date(2026, 12, 25): "Christmas", date(2026, 12, 26): "Boxing Day"}) == XMAS
