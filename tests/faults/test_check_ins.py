"""What runs elsewhere checks in at real triggers: at any of them, as often as it likes, and from a command line."""

import json
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import pytest

from schemas.occurrence import Identity
from shared.postgres import Session
from tests.support.fleet import until
from tests.support.outside import Answer, described, new_key, post, signed
from tests.support.processes import Deployment

pytestmark = [pytest.mark.drill, pytest.mark.timeout(180)]

KEY = new_key()
JOBS = """
usual = dict(schedule=Cron("0 {hour} * * *"), start_within=seconds(1), finish_within=seconds(1))
jobs = [
    RunsElsewhere("report", heard_within=hours(20), **usual),
    RunsElsewhere("silent", heard_within=seconds(3), **usual),
]
"""


async def state_of(session: Session, job: str, deployed: Deployment) -> str:
    return str(
        await session.fetchval(
            "select state from matins.occurrence where job = $1 and scheduled_at = $2", job, deployed.night
        )
    )


async def deploy(deployed: Deployment) -> list[int]:
    """Have two triggers, and the night fall; give the ports of their endpoints."""
    file = deployed.folder / "callers.toml"
    file.write_text(described("old-machine", ["report"], KEY, may="check_ins"))
    deployed.settings |= {"api_callers_file": str(file), "api_address": "127.0.0.1:0"}
    deployed.declare(JOBS.replace("{hour}", str(deployed.night.hour)))
    await deployed.deploy(0, fall=False)
    services = [deployed.start("trigger") for _ in range(2)]
    ports = [int((await service.logged("endpoint open"))["port"]) for service in services]
    for service in services:
        for job in ("report", "silent"):
            await service.logged("job registered", job=job)
    await deployed.fall()
    return ports


async def test_it_checks_in_at_any_trigger_and_what_stays_silent_was_missed(
    deployed: Deployment, session: Session
) -> None:
    ports = await deploy(deployed)
    answers: list[Answer] = []

    async def report(port: int, event: str, identity: str = "") -> None:
        body = json.dumps({"event": event, "run": "a", "scheduled_at": deployed.night.isoformat()}).encode()
        call = signed(KEY, "report", body, identity=identity, path="/v1/check-ins/report")
        answers.append(await anyio.to_thread.run_sync(partial(post, port, call), limiter=anyio.CapacityLimiter(1)))

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(report, ports[number % 2], "start", "msg_start" if number < 10 else "")
    assert sorted(answer.status for answer in answers) == [200] * 19 + [202]
    assert {answer.json["occurrence"] for answer in answers} == {str(Identity("report", deployed.night))}
    said = await deployed.command("check-in", "report", "success", "--run", "a", "--actor", "operator", "--json")
    assert json.loads(said)["state"] == "succeeded"
    answers.clear()
    await report(ports[1], "success")
    assert [answer.status for answer in answers] == [200]
    trail: Any = await session.fetch(
        "select actor, actor_kind, detail ->> 'event' as event from matins.audit where kind = 'check_in' order by id"
    )
    assert [tuple(row) for row in trail] == [("old-machine", "caller", "start"), ("operator", "operator", "success")]

    async def missed() -> bool:
        return await state_of(session, "silent", deployed) == "missed"

    await until(missed)
    assert await state_of(session, "report", deployed) == "succeeded"
