"""Cron text: what is read, what is refused and why, and which wall times come out."""

import json
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.cron import CronExpression
from shared.cron_fields import FIELDS
from shared.errors import DeclarationError, MatinsError

TOKENS = json.loads(Path(__file__).parent.with_name("cases").joinpath("cron_tokens.json").read_text(encoding="utf-8"))


def wall(year: int, month: int, day: int) -> datetime:
    """Give a midnight by the clock on the wall."""
    return datetime(year, month, day)  # noqa: DTZ001 - a wall time has no zone


NEW_YEAR = wall(2026, 1, 1)


@pytest.mark.parametrize("case", TOKENS["refused"], ids=lambda case: ascii(case["text"]))
def test_a_text_that_a_reader_could_mistake_is_refused_and_every_fault_is_named(case: dict[str, list[str]]) -> None:
    with pytest.raises(DeclarationError) as refusal:
        CronExpression.parse(str(case["text"]))
    for name in case["names"]:
        assert name in str(refusal.value)
    assert all(fault.valid for fault in refusal.value.faults)


@pytest.mark.parametrize("case", TOKENS["accepted"], ids=lambda case: ascii(case["text"]))
def test_a_text_is_rewritten_to_one_canonical_form(case: dict[str, str]) -> None:
    expression = CronExpression.parse(case["text"])
    assert expression.text == case["canonical"]
    assert CronExpression.parse(expression.text) == expression
    assert next(expression.wall_times(NEW_YEAR, wall(2076, 1, 1))) > NEW_YEAR


def test_a_fault_names_the_field_the_token_and_the_valid_values() -> None:
    with pytest.raises(DeclarationError) as refusal:
        CronExpression.parse("0 25 * * *")
    assert refusal.value.place == "cron text '0 25 * * *', hour"
    assert refusal.value.problem == "'25' is outside 0-23"
    assert refusal.value.valid == "*, 0-23, ranges, lists, steps"
    assert isinstance(refusal.value, MatinsError)


@pytest.mark.parametrize("text", [None, 5, b"* * * * *", ["* * * * *"]])
def test_what_is_not_text_is_refused(text: str) -> None:
    with pytest.raises(DeclarationError, match="instead of text"):
        CronExpression.parse(text)


@pytest.mark.parametrize(
    "text", ["x " * 5_000, "* * * * *" + " *" * 10_000, "0-99999999/1 * * * *", "1," * 400 + "1 * * * *", "9" * 999]
)
def test_a_long_text_is_answered_at_once(text: str) -> None:
    began = process_time()
    with pytest.raises(DeclarationError) as refusal:
        CronExpression.parse(text + "x")
    assert process_time() - began < 0.1
    assert len(str(refusal.value)) < 600


@pytest.mark.parametrize("text", ["30 2 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 */29 2 1#5"])
def test_a_date_that_never_comes_is_refused_at_once(text: str) -> None:
    began = process_time()
    with pytest.raises(DeclarationError, match="never fires"):
        CronExpression.parse(text)
    assert process_time() - began < 0.5


def test_a_rare_date_is_found_in_both_directions() -> None:
    rare = CronExpression.parse("0 0 * 2 MON#5")
    assert rare.first_after(wall(2072, 3, 1)) == wall(2112, 2, 29)
    assert rare.last_before(NEW_YEAR) == wall(2016, 2, 29)


@pytest.mark.parametrize(
    ("text", "interval"),
    [("* * * * *", True), ("0 */2 * * *", True), ("@hourly", True), ("*/5 2 * * *", False), ("0 2 * * *", False)],
)
def test_a_job_that_runs_all_day_is_told_by_its_hour_field(text: str, *, interval: bool) -> None:
    assert CronExpression.parse(text).is_interval_like is interval


def test_the_calendar_ends_without_an_error() -> None:
    assert list(CronExpression.parse("0 0 1 * *").wall_times(wall(9999, 12, 30), wall(9999, 12, 31))) == []
    assert CronExpression.parse("0 0 1 * *").first_after(wall(9999, 12, 30)) is None
    assert CronExpression.parse("0 0 31 12 *").last_before(wall(1, 1, 2)) is None


def _values(field: int) -> st.SearchStrategy[str]:
    lowest, highest = FIELDS[field].lowest, FIELDS[field].highest
    number = st.integers(lowest, highest)
    ranged = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    step = st.integers(1, highest - lowest).map(lambda step: f"*/{step}")
    return st.one_of(
        st.just("*"), step, st.lists(st.one_of(number.map(str), ranged), min_size=1, max_size=3).map(",".join)
    )


TEXTS = st.tuples(*(_values(field) for field in range(5))).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.integers(0, 2_000))
def test_wall_times_are_those_that_a_walk_over_each_day_finds(text: str, days: int) -> None:
    try:
        expression = CronExpression.parse(text)
    except DeclarationError as refusal:
        assert "never fires" in str(refusal)  # noqa: PT017 - both answers are right, and only this one raises
        return
    start = wall(2024, 1, 1) + timedelta(days=days)
    end = start + timedelta(days=70)
    found = list(islice(expression.wall_times(start - timedelta(seconds=1), end), 500))
    assert found == list(islice(_walk(text, start, end), 500))


def _walk(text: str, start: datetime, end: datetime) -> list[datetime]:
    minutes, hours, days, months, weekdays = (_members(part, index) for index, part in enumerate(text.split()))
    both_needed = text.split()[2].startswith("*") or text.split()[4].startswith("*")
    walls: list[datetime] = []
    day = start
    while day <= end:
        in_month, in_week = day.day in days, bool({day.isoweekday(), day.isoweekday() % 7} & weekdays)
        if day.month in months and ((in_month and in_week) if both_needed else (in_month or in_week)):
            walls += [day.replace(hour=hour, minute=minute) for hour in sorted(hours) for minute in sorted(minutes)]
        day += timedelta(days=1)
    return [wall for wall in walls if wall <= end]


def _members(text: str, field: int) -> set[int]:
    members: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        lowest = FIELDS[field].lowest if first == "*" else int(first)
        highest = FIELDS[field].highest if first == "*" else int(last or first)
        members |= set(range(lowest, highest + 1, int(step or 1)))
    return members


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=40), st.text(alphabet="0123456789*,-/#LWJANMOSUFRI @ \t", max_size=30)))
def test_any_text_is_either_read_or_refused(text: str) -> None:
    try:
        expression = CronExpression.parse(text)
    except DeclarationError:
        return
    assert expression.first_after(NEW_YEAR) is not None
