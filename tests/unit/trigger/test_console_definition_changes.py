"""What differs between two definitions, in a line."""

from copy import deepcopy
from typing import Any

import orjson

from shared.definition import definition_of
from shared.job import Calendar, Cron, Except, PerAccount, minutes
from tests.support.ledger import job_with
from trigger.console.definition_changes import MOST_NAMED, definition_change

CODE = "billing.invoices:invoice"


def recorded(**more: Any) -> Any:
    """Give a definition as the database gives it back."""
    return orjson.loads(orjson.dumps(definition_of(job_with(PerAccount(CODE), **more))))


def test_the_first_has_nothing_before_it() -> None:
    assert definition_change(None, recorded()) == "the first definition"


def test_each_value_is_told_as_it_was_and_as_it_is() -> None:
    before, after = recorded(), recorded(max_tries=3, jitter=minutes(5))
    after["decisions"]["start_within"] = 900.0
    after["decisions"]["overlap"] = "allow"
    told = definition_change(before, after).split("; ")
    assert sorted(told) == [
        'decisions.overlap: "skip" → "allow"',
        "decisions.start_within: 10m → 15m",
        "jitter: nothing → 5m",
        "max_tries: 5 → 3",
    ]
    assert "jitter: 5m → nothing" in definition_change(after, before)


def test_another_kind_of_schedule_is_told() -> None:
    before, after = recorded(), recorded(schedule=Except(Cron("0 2 * * *"), [Calendar("berlin", ["2026-12-25"])]))
    told = definition_change(before, after)
    assert 'schedule.text: "0 2 * * *" → nothing' in told
    assert 'schedule.schedule.text: nothing → "0 2 * * *"' in told


def test_what_is_too_long_to_show_is_not_taken_for_the_same() -> None:
    days = [f"20{year}-12-25" for year in range(26, 90)]
    before = recorded(schedule=Except(Cron("0 2 * * *"), [Calendar("berlin", days)]))
    after = recorded(schedule=Except(Cron("0 2 * * *"), [Calendar("berlin", [*days, "2099-12-25"])]))
    assert definition_change(before, after) == "schedule.exclude: changed in what is too long to show"


def test_of_many_the_first_are_named() -> None:
    before = recorded()
    after = deepcopy(before) | {f"later_{number}": number for number in range(10)}
    told = definition_change(before, after)
    assert told.count("→") == MOST_NAMED
    assert told.endswith("; and 4 more")


def test_what_is_left_out_and_what_is_null_are_the_same() -> None:
    before = recorded()
    assert definition_change(before, before | {"later": None}) == "nothing of what it says"


def test_a_hostile_text_stays_short() -> None:
    told = definition_change(recorded(description="a"), recorded(description="b" * 1_000_000))
    assert told.startswith('description: "a" → "bbb')
    assert len(told) < 200
