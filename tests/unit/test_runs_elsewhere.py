"""Declaring what runs elsewhere: a schedule and three bounds, and nothing that could say otherwise."""

from dataclasses import fields
from typing import Any

import pytest

from shared.declaration import FaultyDeclaration
from shared.definition import definition_of, fingerprint
from shared.job import AccountCall, Cron, EachWorker, Job, PerAccount, RunsElsewhere, hours, minutes
from shared.job_roles import handler_login, handler_role, source_role
from shared.runs_elsewhere import NotHere
from shared.settings import load_settings
from shared.start import topology_of
from shared.timing import Timing
from tests.support.ledger import job_with
from worker.resolve import resolve

NIGHTLY = Cron("0 2 * * *")
BOUNDS: dict[str, Any] = {"start_within": minutes(10), "finish_within": hours(1), "heard_within": hours(20)}
INSTEAD = "valid: RunsElsewhere(name, schedule, start_within=…, finish_within=…, heard_within=…) instead of Job"


async def invoice(call: AccountCall) -> None:
    """Do nothing for an account."""


def refused(*args: Any, **values: Any) -> str:
    with pytest.raises(FaultyDeclaration) as caught:
        RunsElsewhere(*args, **values)
    return str(caught.value)


def test_it_has_a_schedule_and_bounds_and_neither_code_nor_messages() -> None:
    job = RunsElsewhere("report", NIGHTLY, description="On the old machine.", **BOUNDS)
    definition = definition_of(job)
    assert definition["coordination"] == "elsewhere"
    assert definition["handler"] == {"mode": "NotHere"}
    assert definition["queue"] is None
    assert definition["decisions"] == {
        "catch_up": "skip",
        "catch_up_within": 72_000.0,
        "overlap": "allow",
        "start_within": 600.0,
        "finish_within": 3600.0,
    }
    assert Timing.from_definition(job.name, definition).schedule == NIGHTLY
    assert (source_role(job), handler_role(job), handler_login(job)) == (None, None, None)


def test_it_needs_no_queue_and_no_worker_looks_for_its_code() -> None:
    job, other = RunsElsewhere("report", NIGHTLY, **BOUNDS), job_with(PerAccount(invoice))
    jobs = {job.name: job, other.name: other}
    settings = load_settings({"MATINS_ENVIRONMENT": "test"}, need=frozenset())
    assert topology_of(settings, jobs).queues == {other.queue}
    assert resolve(jobs).as_record() == {other.name: None}


def test_each_bound_makes_another_definition() -> None:
    fingerprints = {
        fingerprint(definition_of(RunsElsewhere("report", NIGHTLY, **BOUNDS | changed)))
        for changed in ({}, {"start_within": minutes(9)}, {"finish_within": hours(2)}, {"heard_within": hours(9)})
    }
    assert len(fingerprints) == 4


@pytest.mark.parametrize(
    "name",
    [field.name for field in fields(Job) if field.init and field.name not in {"name", "schedule", "description"}],
)
def test_what_only_a_job_of_ours_has_is_refused(name: str) -> None:
    assert refused("report", NIGHTLY, **BOUNDS, **{name: 1}).startswith(f"job 'report': {name}: is not known; valid: ")


@pytest.mark.parametrize("missing", sorted(BOUNDS))
def test_a_bound_that_is_left_out_comes_with_a_block_to_paste(missing: str) -> None:
    told = refused("report", NIGHTLY, **{name: value for name, value in BOUNDS.items() if name != missing})
    assert told.startswith(f"job 'report': {missing}: must be decided, and has no default. Paste this and choose:")
    for name in BOUNDS:
        assert f"    {name}=" in told


def test_what_starts_and_ends_in_time_is_waited_for() -> None:
    told = refused("report", NIGHTLY, **BOUNDS | {"heard_within": minutes(70)})
    assert told == (
        "job 'report': heard_within: is 70m; valid: more than start_within and finish_within together, which is 70m"
    )
    assert RunsElsewhere("report", NIGHTLY, **BOUNDS | {"heard_within": minutes(71)}).faults == ()


def test_all_faults_are_told_at_once() -> None:
    told = refused("Report", "0 2 * * *", **BOUNDS | {"start_within": 0}).splitlines()
    assert [line.partition("': ")[2].partition(":")[0] for line in told] == ["name", "start_within", "schedule"]
    assert "schedule: is left out" in refused("report", **BOUNDS)


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"coordination": "elsewhere"}, "coordination: is 'elsewhere'"),
        ({"accounts": NotHere()}, "accounts: is NotHere()"),
        ({"coordination": "elsewhere", "accounts": EachWorker()}, "coordination: is 'elsewhere'"),
    ],
)
def test_a_job_of_ours_is_not_made_one_of_these(values: dict[str, Any], place: str) -> None:
    with pytest.raises(FaultyDeclaration) as caught:
        job_with(PerAccount(invoice), **values)
    assert f"{place}; {INSTEAD}" in str(caught.value)


def test_not_here_is_no_handler_of_another_job() -> None:
    with pytest.raises(FaultyDeclaration) as caught:
        Job("report", NIGHTLY, NotHere(), NotHere(), job_with(PerAccount(invoice)).decisions)
    assert str(caught.value).count(INSTEAD) == 2
