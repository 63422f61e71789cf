from typing import Any

import pytest

from shared.declaration import FaultyDeclaration
from shared.definition import definition_of
from shared.job import (
    AccountCall,
    Cron,
    Decisions,
    EachWorker,
    EveryWorker,
    Job,
    PerAccount,
    SqlAccounts,
    WorkerCall,
    hours,
    minutes,
)
from shared.settings import load_settings
from shared.start import topology_of
from worker.evidence import mark_of
from worker.own_jobs import served_by_messages

SKIPPING = Decisions(
    catch_up="skip", catch_up_within=hours(1), overlap="skip", start_within=minutes(1), finish_within=minutes(5)
)


async def refresh(call: WorkerCall) -> None:
    """Do nothing."""


async def other(call: WorkerCall) -> None:
    """Do nothing else."""


async def per_account(call: AccountCall) -> None:
    """Do nothing for an account."""


def declared(**values: Any) -> Job:
    usual: dict[str, Any] = {
        "schedule": Cron("* * * * *"),
        "accounts": EachWorker(),
        "handler": EveryWorker(refresh),
        "decisions": SKIPPING,
        "coordination": "every",
    }
    return Job("refresh", **(usual | values))


def refused(**values: Any) -> str:
    with pytest.raises(FaultyDeclaration) as caught:
        declared(**values)
    return str(caught.value)


def test_what_every_worker_runs_has_no_accounts_no_messages_and_no_queue() -> None:
    job = declared()
    definition = definition_of(job)
    assert (definition["queue"], definition["handler"]["mode"]) == (None, "EveryWorker")
    settings = load_settings({"MATINS_ENVIRONMENT": "test"}, need=frozenset())
    assert not [name for name in topology_of(settings, {"refresh": job}).queue_names if "refresh" in name]
    assert served_by_messages({"refresh": job}) == {}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            {"coordination": "claim"},
            'coordination: does not go with EveryWorker(…) and EachWorker(); valid: coordination="every"',
        ),
        ({"handler": PerAccount("a.b:c")}, "handler: does not go with"),
        ({"accounts": SqlAccounts("select 1 as account")}, "accounts: does not go with"),
        ({"region": "eu-1", "region_delay": minutes(0.5)}, 'valid: coordination="claim"'),
    ],
)
def test_wrong_mixtures_are_refused(values: dict[str, Any], told: str) -> None:
    assert told in refused(**values)


def test_decisions_that_have_no_meaning_for_it_are_refused() -> None:
    latest = Decisions(
        catch_up="latest", catch_up_within=hours(1), overlap="skip", start_within=minutes(1), finish_within=minutes(5)
    )
    assert "decisions: catch_up: is 'latest'; valid: \"skip\"" in refused(decisions=latest)


def test_a_handler_says_by_its_call_what_it_is_for() -> None:
    with pytest.raises(FaultyDeclaration, match="EveryWorker gives it WorkerCall or BlockingWorkerCall"):
        EveryWorker(per_account)  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(FaultyDeclaration, match="takes a WorkerCall, and PerAccount gives it"):
        PerAccount(refresh)  # type: ignore[arg-type]  # the mistake under test


def test_a_long_timeout_is_refused_since_the_work_is_cheap() -> None:
    with pytest.raises(FaultyDeclaration, match="timeout: is 10m; valid: at most 5m"):
        EveryWorker(refresh, timeout=minutes(10))


def test_the_mark_is_that_of_the_code() -> None:
    assert mark_of(refresh) == mark_of(refresh)
    assert mark_of(refresh) != mark_of(other)
    changed: dict[str, Any] = {}
    exec("async def refresh(call): pass", changed)  # noqa: S102 - code without a file
    assert len(mark_of(changed["refresh"])) == 64
