"""Each value of each policy has a sentence of its own, and nothing that was recorded is left out."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, get_args

import orjson
import pytest

from shared.coordination import Coordination
from shared.decisions import CatchUp, Decisions, Overlap, OverlapBy
from shared.definition import definition_of
from shared.every_worker import EachWorker, EveryWorker
from shared.exclusions import Exclusion
from shared.handlers import Settle
from shared.job import (
    Between,
    Calendar,
    Cron,
    Dates,
    Every,
    Except,
    Instants,
    Job,
    OnFinishWithin,
    Outside,
    PerAccount,
    RunsElsewhere,
    SetBased,
    SqlAccounts,
    Weekdays,
    hours,
    minutes,
    seconds,
)
from shared.placing import Fold, Gap
from tests.support.ledger import DECISIONS, job_with
from trigger.console.policies import (
    CATCH_UP,
    COORDINATION,
    MODES,
    ON_FINISH_WITHIN,
    OVERLAP,
    OVERLAP_BY,
    SETTLE,
    policies_of,
)
from trigger.console.policies_schedule import EXCLUSIONS, FOLD, GAP
from trigger.console.recorded import Policy

CODE = "billing.invoices:invoice"
SKIPS = Decisions(
    catch_up="skip", catch_up_within=hours(1), overlap="skip", start_within=minutes(1), finish_within=minutes(2)
)
EVERYTHING = Decisions(
    catch_up="all",
    catch_up_within=hours(20),
    catch_up_at_most=100,
    catch_up_pace=minutes(1),
    overlap="allow",
    overlap_by="account",
    start_within=minutes(10),
    finish_within=hours(3),
    no_progress_within=minutes(15),
)
BERLIN = Cron("30 2 * * *", "Europe/Berlin", "skip", "first")
DAYS = ["2026-12-24", "2026-12-25", "2026-12-26", "2026-12-31", "2027-01-01", "2027-01-06"]
LEFT_OUT: list[Exclusion] = [
    Weekdays(["sat", "sun"]),
    Dates(DAYS),
    Between("2026-08-01", "2026-08-31"),
    Calendar("berlin", DAYS),
]
JOBS: dict[str, Job] = {
    "plain": job_with(PerAccount(CODE)),
    "everything": Job(
        "everything",
        Except(BERLIN, LEFT_OUT),
        SqlAccounts("select 1"),
        PerAccount(CODE, role="job_invoice", settle="batched", chunk_size=10),
        EVERYTHING,
        max_tries=1,
        partial_ok=0.025,
        on_finish_within="stop",
        jitter=minutes(5),
        region="eu-1",
        region_delay=minutes(2),
        description="Bills.",
        pause_after_failures=3,
    ),
    "set based": job_with(SetBased(CODE, login="invoice_login", concurrency=1)),
    "outside": job_with(Outside(CODE, key_valid_for=hours(24)), coordination="external"),
    "leader": job_with(PerAccount(CODE), coordination="leader", schedule=Instants(["2026-12-24T10:00Z"])),
    "every": Job("e", Every(minutes=5), EachWorker(), EveryWorker(CODE), SKIPS, coordination="every"),
    "elsewhere": RunsElsewhere(
        "x", Cron("@daily"), start_within=seconds(30), finish_within=hours(1), heard_within=hours(20)
    ),
}


def recorded(job: Job) -> Any:
    """Give a definition as the database gives it back."""
    return orjson.loads(orjson.dumps(definition_of(job)))


def policies(definition: Mapping[str, Any]) -> Iterator[Policy]:
    """Give the policies of all parts."""
    return (policy for part in policies_of(definition) for policy in part.policies)


def sentence(definition: Mapping[str, Any], written: str) -> str:
    """Give the sentence of what is written so."""
    return next(policy.told for policy in policies(definition) if policy.written == written)


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (COORDINATION, Coordination),
        (CATCH_UP, CatchUp),
        (OVERLAP, Overlap),
        (OVERLAP_BY, OverlapBy),
        (ON_FINISH_WITHIN, OnFinishWithin),
        (SETTLE, Settle),
        (GAP, Gap),
        (FOLD, Fold),
    ],
)
def test_each_value_has_a_sentence_of_its_own(words: Mapping[str, str], values: Any) -> None:
    assert set(words) == set(get_args(values))
    assert len(set(words.values())) == len(words)


def test_each_way_of_calling_has_a_sentence_of_its_own() -> None:
    assert set(MODES) == {recorded(job)["handler"]["mode"] for job in JOBS.values()}
    assert len(set(MODES.values())) == len(MODES)


@pytest.mark.parametrize("name", JOBS)
def test_everything_that_this_release_records_is_told(name: str) -> None:
    definition = recorded(JOBS[name])
    found = list(policies(definition))
    assert [policy.written for policy in found if not policy.told] == []
    told = [policy.told for policy in found]
    assert len(set(told)) == len(told), "no two mean the same"
    assert all(one.endswith(".") for one in told)


@pytest.mark.parametrize(
    ("place", "value", "written"),
    [
        (("decisions", "overlap"), "skip", 'decisions.overlap="skip"'),
        (("decisions", "catch_up"), "latest", 'decisions.catch_up="latest"'),
        (("on_finish_within",), "stop", 'on_finish_within="stop"'),
        (("coordination",), "leader", 'coordination="leader"'),
        (("handler", "settle"), "batched", 'handler.settle="batched"'),
    ],
)
def test_a_value_changes_its_sentence_and_an_unknown_one_is_shown_as_it_stands(
    place: tuple[str, ...], value: str, written: str
) -> None:
    definition = recorded(JOBS["plain"])
    holder = definition[place[0]] if len(place) > 1 else definition
    holder[place[-1]] = value
    assert sentence(definition, written)
    holder[place[-1]] = "twice"
    assert sentence(definition, written.replace(value, "twice")) == ""


def test_the_sentence_of_a_policy_says_what_it_means() -> None:
    plain, full = recorded(JOBS["plain"]), recorded(JOBS["everything"])
    assert sentence(plain, 'decisions.overlap="skip"') == "If the instant before still runs, this one is skipped."
    assert sentence(plain, "decisions.start_within=10m").startswith("If nobody has claimed it 10m after it was due")
    assert sentence(plain, "decisions.finish_within=3h") == "It is to be finished within 3h of its claim."
    assert sentence(full, "partial_ok=0.025").startswith("Up to 2.5% of the accounts may fail")
    assert sentence(full, "pause_after_failures=3").startswith("After 3 failed occurrences in a row the job is paused")
    assert sentence(full, "jitter=5m").startswith("Each occurrence is put off by up to 5m")
    assert sentence(full, "decisions.catch_up_at_most=100") == "Of those no more than the last 100 run."


def test_who_attempts_it_decides_what_late_and_missed_mean() -> None:
    told = {name: [policy.told for policy in policies(recorded(job))] for name, job in JOBS.items()}
    assert any("nobody has called for within 20h" in one for one in told["outside"])
    assert any("a worker has not begun it 1m after" in one for one in told["every"])
    assert any("has not checked in 30s after" in one for one in told["elsewhere"])
    assert any("not heard of within 20h is over" in one for one in told["elsewhere"])
    assert any("within 1h of its start" in one for one in told["elsewhere"])
    assert not any("tried" in one for name in ("every", "elsewhere") for one in told[name])


def test_what_a_calendar_leaves_out_is_named() -> None:
    told = "\n".join(policy.told for policy in policies(recorded(JOBS["everything"])))
    assert "does not run on sat and sun." in told
    assert "2026-12-24, 2026-12-25, 2026-12-26, 2026-12-31, 2027-01-01 and 1 more days." in told
    assert "from 2026-08-01 to 2026-08-31, both included." in told
    assert "on the 6 days of the calendar berlin; the last is 2027-01-06, and nothing is left out after it." in told
    kinds = {one["kind"] for one in recorded(JOBS["everything"])["schedule"]["exclude"]}
    assert kinds == set(EXCLUSIONS)


def test_what_a_later_release_has_recorded_is_shown_as_it_stands() -> None:
    definition = recorded(JOBS["everything"])
    definition["quorum"] = {"of": 3}
    definition["decisions"]["give_way_to"] = ["billing"]
    definition["handler"]["mode"] = "PerTenant"
    definition["backoff"] = "fibonacci"
    definition["schedule"]["exclude"].append({"kind": "moon", "phase": "full"})
    definition["decisions"]["start_within"] = {"business_hours": 3}
    written = {policy.written for policy in policies(definition) if not policy.told}
    assert written == {
        'quorum={"of": 3}',
        'decisions.give_way_to=["billing"]',
        'handler.mode="PerTenant"',
        'backoff="fibonacci"',
        'schedule.exclude={"kind": "moon", "phase": "full"}',
        'decisions.start_within={"business_hours": 3}',
    }


@pytest.mark.parametrize("schedule", [{"kind": "tides", "port": "Hull"}, "0 2 * * *", ["0 2 * * *"], {}, None])
def test_a_schedule_that_cannot_be_read_is_shown(schedule: Any) -> None:
    definition = recorded(JOBS["plain"]) | {"schedule": schedule}
    shown = [policy.written for policy in policies(definition) if not policy.told]
    assert bool(shown) == bool(schedule)


@pytest.mark.parametrize("odd", [None, True, -1, 1e308, float("nan"), "x" * 100_000, [], {"a": [1] * 1000}, [[]]])
def test_whatever_stands_there_is_told_or_shown_and_nothing_breaks(odd: Any) -> None:
    usual = recorded(JOBS["everything"])
    for name, value in usual.items():
        for inner in value if isinstance(value, dict) else ():
            changed = deepcopy(usual)
            changed[name][inner] = odd
            assert all(policy.written for policy in policies(changed))
        assert all(len(policy.written) < 400 for policy in policies(usual | {name: odd}))


def test_no_value_of_a_job_is_read_twice_or_lost() -> None:
    for job in JOBS.values():
        written = [policy.written for policy in policies(recorded(job) | {"later": 1})]
        assert written.count("later=1") == 1
        assert len(set(written)) == len(written)


def test_the_decisions_of_the_readme_are_all_told() -> None:
    assert {"overlap", "catch_up", "start_within", "finish_within", "catch_up_within"} <= {
        policy.written.partition("=")[0].removeprefix("decisions.")
        for policy in policies(recorded(job_with(PerAccount(CODE), decisions=DECISIONS)))
    }
