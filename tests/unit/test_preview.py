"""The preview: each due instant once, and each clock change in words."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from shared.exclusions import Calendar, Weekdays
from shared.job import minutes
from shared.schedule import Cron, Fold, Gap
from shared.schedule_every import Every
from shared.schedule_except import Except
from shared.schedule_instants import Instants
from shared.schedule_protocol import Schedule
from shared.timing import Timing
from trigger.preview import PreviewRow, preview, rows_as_json, shared_by_all

SPRING = datetime(2026, 3, 28, tzinfo=UTC)
AUTUMN = datetime(2026, 10, 24, tzinfo=UTC)
DAYS = timedelta(days=3)


def berlin(text: str, gap: Gap = "skip", fold: Fold = "first") -> Cron:
    return Cron(text, "Europe/Berlin", gap, fold)


def shown(
    schedule: Schedule, after: datetime, until: datetime, count: int, *others: Timing, jitter: timedelta = timedelta(0)
) -> list[PreviewRow]:
    return preview(Timing("nightly", schedule, jitter), after, until, count, others)


def row(scheduled_at: str, local: str, note: str = "") -> PreviewRow:
    return PreviewRow(scheduled_at, scheduled_at, local, note)


def test_a_row_has_the_instant_in_utc_and_as_the_zone_shows_it() -> None:
    rows = shown(Cron("0 2 * * *"), SPRING, SPRING + DAYS, 2)
    assert rows == [
        row("2026-03-28T02:00:00Z", "2026-03-28T02:00:00+00:00"),
        row("2026-03-29T02:00:00Z", "2026-03-29T02:00:00+00:00"),
    ]


@pytest.mark.parametrize(
    ("text", "gap", "expected"),
    [
        ("30 2 * * *", "skip", PreviewRow(
            None, None, "2026-03-29T02:30:00", "clocks go forward: 02:30 does not exist, left out (gap=skip)")),
        ("30 2 * * *", "next_valid", row(
            "2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00",
            "clocks go forward: 02:30 does not exist, moved to 03:00 (gap=next_valid)")),
        ("30 2 * * *", "shift", row(
            "2026-03-29T01:30:00Z", "2026-03-29T03:30:00+02:00",
            "clocks go forward: 02:30 does not exist, moved to 03:30 (gap=shift)")),
        ("*/20 2 * * *", "next_valid", row(
            "2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00",
            "clocks go forward: 3 due times from 02:00 to 02:40 do not exist, moved to 03:00 (gap=next_valid)")),
        ("0 9 * * *", "skip", row(
            "2026-03-29T07:00:00Z", "2026-03-29T09:00:00+02:00",
            "clocks went forward by 1:00:00 since the run before")),
    ],
)  # fmt: skip
def test_clocks_going_forward_are_explained(text: str, gap: Gap, expected: PreviewRow) -> None:
    rows = shown(berlin(text, gap), SPRING, SPRING + DAYS, 100)
    assert next(one for one in rows if one.note) == expected


@pytest.mark.parametrize(
    ("fold", "notes"),
    [
        ("first", {"2026-10-25T00:30:00Z": "runs the first time only (fold=first)"}),
        ("second", {"2026-10-25T01:30:00Z": "runs the second time only (fold=second)"}),
        ("both", {"2026-10-25T00:30:00Z": "first of two runs (fold=both)",
                  "2026-10-25T01:30:00Z": "second of two runs (fold=both)"}),
    ],
)  # fmt: skip
def test_clocks_going_back_are_explained(fold: Fold, notes: dict[str, str]) -> None:
    rows = shown(berlin("30 2 * * *", fold=fold), AUTUMN, AUTUMN + DAYS, 100)
    explained = {one.scheduled_at: one.note for one in rows if "happens twice" in one.note}
    assert explained == {instant: f"clocks go back: 02:30 happens twice, {note}" for instant, note in notes.items()}


def test_a_missing_day_is_written_with_its_date() -> None:
    apia = Cron("0 9 * * *", "Pacific/Apia", "next_valid", "first")
    rows = shown(apia, datetime(2011, 12, 30, tzinfo=UTC), datetime(2011, 12, 31, tzinfo=UTC), 5)
    assert rows[0].note == "clocks go forward: 2011-12-30 09:00 does not exist, moved to 00:00 (gap=next_valid)"


def test_left_out_times_are_not_counted_and_stand_in_order() -> None:
    rows = shown(berlin("30 2 * * *"), SPRING, SPRING + DAYS, 2)
    assert [one.scheduled_at for one in rows] == ["2026-03-28T01:30:00Z", None, "2026-03-30T00:30:00Z"]


@pytest.mark.parametrize("count", [0, -1])
def test_no_rows_are_asked_for(count: int) -> None:
    assert shown(berlin("30 2 * * *"), SPRING, SPRING + DAYS, count) == []


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(ValueError, match="has no zone"):
        shown(berlin("30 2 * * *"), SPRING.replace(tzinfo=None), SPRING, 1)


def test_rows_are_written_as_json() -> None:
    rows = shown(berlin("30 2 * * *"), SPRING, SPRING + DAYS, 2)
    assert json.loads(rows_as_json(rows))[1] == {
        "scheduled_at": None,
        "due_at": None,
        "local": "2026-03-29T02:30:00",
        "note": "clocks go forward: 02:30 does not exist, left out (gap=skip)",
    }


def test_what_a_calendar_leaves_out_stands_there_uncounted_with_its_reason() -> None:
    schedule = Except(berlin("30 2 * * *"), [Weekdays(["mon"]), Calendar("spring", ["2026-03-31"])])
    rows = shown(schedule, SPRING, SPRING + 10 * DAYS, 2)
    assert [(one.scheduled_at, one.due_at, one.note) for one in rows] == [
        ("2026-03-28T01:30:00Z", "2026-03-28T01:30:00Z", ""),
        (None, None, "clocks go forward: 02:30 does not exist, left out (gap=skip)"),
        ("2026-03-30T00:30:00Z", None, "left out: mon"),
        ("2026-03-31T00:30:00Z", None, "left out: calendar spring"),
        ("2026-04-01T00:30:00Z", "2026-04-01T00:30:00Z", "clocks went forward by 1:00:00 since the run before"),
    ]


def test_jitter_is_shown_beside_the_scheduled_instant() -> None:
    timing = Timing("nightly", Cron("0 2 * * *"), minutes(5))
    (one,) = preview(timing, SPRING, SPRING + DAYS, 1)
    due = timing.due_at(datetime.fromisoformat(str(one.scheduled_at)))
    assert one.due_at == f"{due:%Y-%m-%dT%H:%M:%SZ}" != one.scheduled_at


def test_jobs_of_the_same_instant_are_named() -> None:
    others = [
        Timing("charge", Cron("0 2 29 * *")),
        Timing("hourly", Every(hours=1)),
        Timing("later", Cron("0 2 * * *", "Europe/Berlin", "skip", "first")),
        Timing("once", Instants(["2026-03-30T02:00Z"])),
        Timing("off", Except(Cron("0 2 * * *"), [Weekdays(["sat", "sun", "mon"])])),
    ]
    rows = shown(Cron("0 2 * * *"), SPRING, SPRING + DAYS, 3, *others)
    assert [one.note for one in rows] == [
        "the same instant as hourly",
        "the same instant as charge, hourly",
        "the same instant as hourly, once",
    ]
    assert shared_by_all(rows, others) == ["hourly"]
    assert shared_by_all(rows[:1], others) == [], "what happens once is no rule"


@pytest.mark.parametrize(
    ("text", "gap", "note"),
    [
        ("30 2-3 * * *", "shift",
         "02:30 does not exist, moved to 03:30 (gap=shift), due anyway: one for 2 times"),
        ("*/30 2,3 * * *", "next_valid",
         "2 due times from 02:00 to 02:30 do not exist, moved to 03:00 (gap=next_valid), due anyway: one for 3 times"),
    ],
)  # fmt: skip
def test_an_instant_that_several_wall_times_lead_to_says_so(text: str, gap: Gap, note: str) -> None:
    rows = shown(berlin(text, gap), SPRING + timedelta(days=1), SPRING + DAYS, 100)
    assert next(one.note for one in rows if one.note) == f"clocks go forward: {note}"
