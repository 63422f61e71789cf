"""Who leads a job, and that nobody does, is told by `status` and `doctor`."""

from collections.abc import AsyncIterator

import pytest

from shared.fleet import Instance, register_instance
from shared.postgres import Session
from shared.settings import load_settings
from shared.terminal_tables import Times
from tests.integration.trigger.support import LEASE, job_at
from tests.support.ledger import session_on
from trigger.commands_print import print_status
from trigger.doctor_database import Looked
from trigger.doctor_fleet import check_fleet
from trigger.leader import Leadership
from trigger.register import register
from trigger.status import Status, read_status

NOBODY = "nightly: no trigger leads it"


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    """A database with a job that one must lead, a trigger and a worker."""
    async with session_on(database_url) as opened:
        await register(opened, job_at(coordination="leader"), instance="one")
        for kind in ("trigger", "worker"):
            await register_instance(opened, Instance(f"{kind}-1", kind, "host", "0.1.0", "", ""), {})
        yield opened


async def status_of(session: Session) -> Status:
    return await read_status(session, load_settings({}, need=frozenset()))


async def test_status_names_the_leader_and_its_epoch(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    assert NOBODY in (await status_of(session)).problems
    await Leadership("trigger-1", LEASE).lead(session, ["nightly"])
    status = await status_of(session)
    assert NOBODY not in status.problems
    (job,) = status.jobs
    assert (job["coordination"], job["leader"]["instance"], job["leader"]["epoch"]) == ("leader", "trigger-1", 1)
    print_status(status, Times())
    assert "leader trigger-, epoch 1" in capsys.readouterr().out
    await session.execute("update matins.lease set until = clock_timestamp() - interval '1 second'")
    assert NOBODY in (await status_of(session)).problems
    await session.execute("update matins.job set retired_at = clock_timestamp()")
    assert NOBODY not in (await status_of(session)).problems


async def test_without_a_trigger_that_alone_is_told(session: Session) -> None:
    await session.execute("update matins.instance set stopped_at = clock_timestamp()")
    problems = (await status_of(session)).problems
    assert NOBODY not in problems
    assert any("no trigger is live" in one for one in problems)


def looked(leader: str | None) -> Looked:
    triggers = [
        {"kind": "trigger", "id": name, "jobs": {"nightly": 1}, "version": "0", "tzdata_version": "0"}
        for name in ("one", "two")
    ]
    found = Looked()
    found.instances = triggers
    found.jobs = [{"name": "nightly", "revision": 1, "definition": {"coordination": "leader"}}]
    found.leaders = {} if leader is None else {"nightly": {"instance": leader, "epoch": 4}}
    return found


@pytest.mark.parametrize(
    ("leader", "level", "told"),
    [
        ("one", "ok", "nightly: led by one, epoch 4"),
        ("gone", "warn", "nightly: led by gone, epoch 4, which is silent"),
        (None, "fail", "nightly: no trigger leads it"),
    ],
)
def test_the_doctor_judges_it(leader: str | None, level: str, told: str) -> None:
    (finding,) = [one for one in check_fleet(looked(leader), {}) if one.check == "leader"]
    assert finding.level == level
    assert told in finding.found
