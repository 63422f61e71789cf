"""Each restated fault about time, under every policy that it allows; the instants were found without a cron library."""

import json
from collections.abc import Container, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from shared.errors import DeclarationError
from shared.schedule import Cron, Fold, Gap
from shared.timing import Timing
from trigger.preview import preview

ROWS = json.loads(Path(__file__).parent.with_name("cases").joinpath("time_cases.json").read_text(encoding="utf-8"))
REFUSED = {"C08-01", "C08-02"}
SECOND = timedelta(seconds=1)


def _expanded(without: Container[str] = ()) -> Iterator[Any]:
    for row in ROWS:
        if row["id"] in without:
            continue
        gaps = get_args(Gap) if row["gap_policy"] == "any" else (row["gap_policy"],)
        folds = get_args(Fold) if row["fold_policy"] == "any" else (row["fold_policy"],)
        for gap, fold in product(gaps, folds):
            yield pytest.param(row, gap, fold, id=f"{row['id']}-{gap}-{fold}")


def _window(row: dict[str, Any]) -> tuple[datetime, datetime]:
    """Turn the half-open window [start, end) into ours, (after, until]; all instants are on whole seconds."""
    return tuple(datetime.fromisoformat(row[end]) - SECOND for end in ("window_start_utc", "window_end_utc"))  # type: ignore[return-value] # two names, two instants


def _expected(row: dict[str, Any]) -> list[datetime]:
    return [datetime.fromisoformat(instant) for instant in row["expected_utc"]]


@pytest.mark.parametrize(("row", "gap", "fold"), list(_expanded()))
def test_the_instants_are_exactly_these(row: dict[str, Any], gap: Gap, fold: Fold) -> None:
    if row["id"] in REFUSED:
        with pytest.raises(DeclarationError, match="never fires"):
            Cron(row["cron"], row["timezone"], gap, fold)
        return
    schedule = Cron(row["cron"], row["timezone"], gap, fold)
    after, until = _window(row)
    expected = _expected(row)
    assert list(schedule.instants(after, until)) == expected
    assert all(instant.tzinfo is UTC for instant in schedule.instants(after, until))
    timing = Timing("case", schedule)
    shown = [shown.scheduled_at for shown in preview(timing, after, until, 10_000) if shown.scheduled_at is not None]
    assert shown == row["expected_utc"]


@pytest.mark.parametrize(("row", "gap", "fold"), list(_expanded(without=REFUSED)))
def test_stepping_forward_and_back_meets_the_same_instants(row: dict[str, Any], gap: Gap, fold: Fold) -> None:
    schedule = Cron(row["cron"], row["timezone"], gap, fold)
    after, until = _window(row)
    expected = _expected(row)
    forward = [after]
    while forward[-1] <= until:
        forward.append(schedule.next_after(forward[-1]))
    assert forward[1:-1] == expected
    back = [until + SECOND]
    while (earlier := schedule.previous_before(back[-1])) is not None and earlier > after:
        back.append(earlier)
    assert back[:0:-1] == expected


def test_every_row_is_run() -> None:
    assert len(ROWS) == 131
    assert {row["id"] for row in ROWS if row.get("nonstandard_syntax") and not row["expected_utc"]} == REFUSED
