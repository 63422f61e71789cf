"""Pauses, retirements and ad-hoc runs among processes at work."""

import json
from typing import Any

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.holds import call_hold
from tests.support.nights import (
    HELD_JOBS,
    assert_night,
    assert_one_effect_each,
    closed_occurrence,
    count,
    occurrence_of,
)
from tests.support.processes import Deployment

pytestmark = [pytest.mark.drill, pytest.mark.timeout(90)]

ACCOUNTS = 30
JOBS = """
jobs = [nightly(name, PerAccount(effect)) for name in ("held", "skipped", "retired", "other")]
"""


async def test_what_falls_due_is_held_or_skipped_until_the_job_is_resumed(
    deployed: Deployment, session: Session
) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS, fall=False)
    triggers = [deployed.start("trigger") for _ in range(3)]
    deployed.start("worker")
    await until(lambda: session.fetchval("select count(*) = 4 from matins.job"))
    await deployed.command("pause", "held", "--meanwhile", "hold", "--reason", "the provider is down")
    await deployed.command("pause", "skipped", "--reason", "the price list is wrong", "--actor", "ann")
    await deployed.command("retire", "retired", "--reason", "replaced")
    await deployed.fall("held", "skipped", "other")
    await assert_night(session, deployed, "other", ACCOUNTS)
    skipped = await until(lambda: skipped_by(session, deployed, "skipped"))
    assert skipped["reason"] == "paused"
    assert (await occurrence_of(session, deployed, "held"))["state"] == "expected", "it waits"
    status = {one["job"]: one for one in json.loads(await status_of(deployed))["jobs"]}
    assert "by ann: the price list is wrong (skip)" in status["skipped"]["standing"]
    assert "the provider is down (hold)" in status["held"]["standing"]
    assert status["retired"]["standing"].endswith("replaced")
    assert [status[name]["late_since"] for name in ("held", "skipped", "retired")] == [None] * 3
    for job in ("held", "skipped"):
        await deployed.command("resume", job, "--reason", "mended")
    await assert_one_effect_each(session, await assert_night(session, deployed, "held", ACCOUNTS), ACCOUNTS)
    assert (await occurrence_of(session, deployed, "skipped"))["state"] == "skipped", "never for the time before"
    for trigger in triggers:
        await trigger.logged("job is retired", job="retired")
    assert (
        await count(session, "select count(*) from matins.occurrence where job = 'retired' and state <> 'skipped'") == 0
    )


async def skipped_by(session: Session, deployed: Deployment, job: str) -> Any:
    row = await occurrence_of(session, deployed, job)
    return row if row["state"] == "skipped" else None


async def status_of(deployed: Deployment) -> str:
    """Give what `status --json` prints; it ends with 1 where something is not well."""
    service = deployed.start("trigger", "status", "--json")
    assert await service.ended() in {0, 1}
    return service.log.read_text()


async def test_what_runs_when_its_job_is_paused_goes_on_to_its_end(deployed: Deployment, session: Session) -> None:
    deployed.declare(HELD_JOBS)
    await deployed.deploy(ACCOUNTS)
    async with call_hold(session) as hold:
        deployed.start("trigger")
        worker = deployed.start("worker")
        await hold.reached(worker)
        told = json.loads(await deployed.command("pause", "night", "--reason", "the price list is wrong", "--json"))
        row = await occurrence_of(session, deployed, "night")
        assert [one.partition(":")[0] for one in told["running"]] == ["night"]
        assert row["state"] == "running"
        await hold.let_go()
    await assert_one_effect_each(session, await assert_night(session, deployed, "night", ACCOUNTS), ACCOUNTS)


async def test_an_ad_hoc_run_beside_the_night_is_one_of_its_own(deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS)
    deployed.start("trigger")
    deployed.start("worker")
    night = await closed_occurrence(session, deployed, "other")
    said = await deployed.command("fire", "other", "--ad-hoc", "--reason", "for the auditors", "--wait", "--json")
    fired = json.loads(said[said.index("{") :])
    assert fired["state"] == "succeeded"
    assert fired["occurrence"].startswith("other+ad-hoc-")
    assert fired["counts"]["succeeded"] == ACCOUNTS
    found = await session.fetch(
        "select occurrence, count(*) as effects from effect where occurrence like 'other%' group by occurrence"
    )
    assert {row["occurrence"]: row["effects"] for row in found} == {
        fired["occurrence"]: ACCOUNTS,
        f"other:{deployed.night:%Y-%m-%dT%H:%MZ}": ACCOUNTS,
    }
    last = {one["job"]: one["last"] for one in json.loads(await status_of(deployed))["jobs"]}
    assert last["other"]["scheduled_at"].startswith(f"{night['scheduled_at']:%Y-%m-%dT%H:%M}")
    assert last["other"]["occurrence"] == f"other:{deployed.night:%Y-%m-%dT%H:%MZ}"
