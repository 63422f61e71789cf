"""The preview: each due instant once, and each clock change in words."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from shared.schedule import Cron, Fold, Gap
from trigger.preview import PreviewRow, preview, rows_as_json

SPRING = datetime(2026, 3, 28, tzinfo=UTC)
AUTUMN = datetime(2026, 10, 24, tzinfo=UTC)
DAYS = timedelta(days=3)


def berlin(text: str, gap: Gap = "skip", fold: Fold = "first") -> Cron:
    return Cron(text, "Europe/Berlin", gap, fold)


def test_a_row_has_the_instant_in_utc_and_as_the_zone_shows_it() -> None:
    rows = preview(Cron("0 2 * * *"), SPRING, SPRING + DAYS, 2)
    assert rows == [
        PreviewRow("2026-03-28T02:00:00Z", "2026-03-28T02:00:00+00:00"),
        PreviewRow("2026-03-29T02:00:00Z", "2026-03-29T02:00:00+00:00"),
    ]


@pytest.mark.parametrize(
    ("text", "gap", "expected"),
    [
        ("30 2 * * *", "skip", PreviewRow(
            None, "2026-03-29T02:30:00", "clocks go forward: 02:30 does not exist, left out (gap=skip)")),
        ("30 2 * * *", "next_valid", PreviewRow(
            "2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00",
            "clocks go forward: 02:30 does not exist, moved to 03:00 (gap=next_valid)")),
        ("30 2 * * *", "shift", PreviewRow(
            "2026-03-29T01:30:00Z", "2026-03-29T03:30:00+02:00",
            "clocks go forward: 02:30 does not exist, moved to 03:30 (gap=shift)")),
        ("*/20 2 * * *", "next_valid", PreviewRow(
            "2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00",
            "clocks go forward: 3 due times from 02:00 to 02:40 do not exist, moved to 03:00 (gap=next_valid)")),
        ("0 9 * * *", "skip", PreviewRow(
            "2026-03-29T07:00:00Z", "2026-03-29T09:00:00+02:00",
            "clocks went forward by 1:00:00 since the run before")),
    ],
)  # fmt: skip
def test_clocks_going_forward_are_explained(text: str, gap: Gap, expected: PreviewRow) -> None:
    rows = preview(berlin(text, gap), SPRING, SPRING + DAYS, 100)
    assert next(row for row in rows if row.note) == expected


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
    rows = preview(berlin("30 2 * * *", fold=fold), AUTUMN, AUTUMN + DAYS, 100)
    explained = {row.scheduled_at: row.note for row in rows if "happens twice" in row.note}
    assert explained == {instant: f"clocks go back: 02:30 happens twice, {note}" for instant, note in notes.items()}


def test_a_missing_day_is_written_with_its_date() -> None:
    apia = Cron("0 9 * * *", "Pacific/Apia", "next_valid", "first")
    rows = preview(apia, datetime(2011, 12, 30, tzinfo=UTC), datetime(2011, 12, 31, tzinfo=UTC), 5)
    assert rows[0].note == "clocks go forward: 2011-12-30 09:00 does not exist, moved to 00:00 (gap=next_valid)"


def test_left_out_times_are_not_counted_and_stand_in_order() -> None:
    rows = preview(berlin("30 2 * * *"), SPRING, SPRING + DAYS, 2)
    assert [row.scheduled_at for row in rows] == ["2026-03-28T01:30:00Z", None, "2026-03-30T00:30:00Z"]


@pytest.mark.parametrize("count", [0, -1])
def test_no_rows_are_asked_for(count: int) -> None:
    assert preview(berlin("30 2 * * *"), SPRING, SPRING + DAYS, count) == []


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(ValueError, match="has no zone"):
        preview(berlin("30 2 * * *"), SPRING.replace(tzinfo=None), SPRING, 1)


def test_rows_are_written_as_json() -> None:
    rows = preview(berlin("30 2 * * *"), SPRING, SPRING + DAYS, 2)
    assert json.loads(rows_as_json(rows))[1] == {
        "scheduled_at": None,
        "local": "2026-03-29T02:30:00",
        "note": "clocks go forward: 02:30 does not exist, left out (gap=skip)",
    }
