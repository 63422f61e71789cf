"""Outside schedulers against real triggers: they call again and from anywhere, and an occurrence is claimed once."""

import time
from collections import Counter
from functools import partial

import anyio
import anyio.to_thread
import pytest

from schemas.occurrence import Identity
from shared.postgres import Session
from tests.support.fleet import until
from tests.support.nights import assert_night, assert_one_effect_each, count
from tests.support.otlp import Collector
from tests.support.outside import Answer, Signed, bearing, described, new_key, path_of, post, running_issuer, signed
from tests.support.processes import Deployment, Service

pytestmark = [pytest.mark.drill, pytest.mark.timeout(180)]

EXTERNAL = "jobs = [nightly('night', PerAccount(effect), coordination='external')]\n"
JOBS = "jobs = [nightly('night', PerAccount(effect))]\n"
BLOCKING_JOBS = """
async def blocks(call):
    (HERE / "blocked").touch()
    while not (HERE / "go").exists():
        time.sleep(0.05)
    yield AccountAt("a000000", "1")

jobs = [
    nightly("night", PerAccount(effect), coordination="external"),
    nightly("blocks", PerAccount(effect), accounts=GeneratedAccounts(blocks)),
]
"""
ACCOUNTS = 20
KEY = new_key()
# Long enough for a call to come before the triggers look themselves.
SELDOM = "15s"
CLAIMS = "select count(*) from matins.audit where kind = 'claim'"


async def port_of(service: Service) -> int:
    """Wait until a trigger's endpoint is open, and give its port."""
    return int((await service.logged("endpoint open"))["port"])


async def deploy(deployed: Deployment, callers: str, jobs: str = JOBS) -> None:
    """Deploy a job that is known and not due yet, and let `callers` call."""
    file = deployed.folder / "callers.toml"
    file.write_text(callers)
    deployed.settings |= {"api_callers_file": str(file), "api_address": "127.0.0.1:0"}
    deployed.declare(jobs)
    await deployed.deploy(ACCOUNTS, fall=False)


async def begin(deployed: Deployment, triggers: int, **settings: str) -> tuple[list[Service], list[int]]:
    """Start triggers, and wait until their endpoints are open and the job is planned."""
    services = [deployed.start("trigger", **settings) for _ in range(triggers)]
    ports = [await port_of(service) for service in services]
    for service in services:
        await service.logged("job registered")
    return services, ports


async def send(port: int, call: Signed) -> Answer:
    """Send a call without keeping the loop from anything."""
    return await anyio.to_thread.run_sync(partial(post, port, call), limiter=anyio.CapacityLimiter(1))


def named(deployed: Deployment, key: str = KEY, identity: str = "") -> Signed:
    """Sign a call that names the night."""
    body = b'{"scheduled_at": "%s"}' % deployed.night.isoformat().encode()
    return signed(key, "night", body, identity=identity)


async def test_a_hundred_deliveries_to_two_triggers_claim_once_and_the_night_runs(
    deployed: Deployment, session: Session
) -> None:
    await deploy(deployed, described("cron", ["night"], KEY))
    _, ports = await begin(deployed, 2, tick_interval=SELDOM)
    deployed.start("worker")
    await deployed.fall()
    call, answers = named(deployed), list[Answer]()

    async def deliver(port: int) -> None:
        answers.append(await send(port, call))

    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(deliver, ports[number % 2])
    assert Counter(answer.status for answer in answers) <= Counter({202: 1, 200: 100})
    assert len(answers) == 100
    assert len({answer.json["id"] for answer in answers}) == 1
    assert {answer.json["occurrence"] for answer in answers} == {str(Identity("night", deployed.night))}
    assert await count(session, "select count(*) from matins.signed_call") == 1
    occurrence = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, occurrence, ACCOUNTS)
    assert await count(session, f"{CLAIMS} and occurrence_id = $1", occurrence["id"]) == 1


async def test_an_external_job_runs_when_it_is_called_for_and_not_by_itself(
    deployed: Deployment, session: Session
) -> None:
    await deploy(deployed, described("cron", ["night"], KEY), EXTERNAL)
    _, ports = await begin(deployed, 2)
    deployed.start("worker")
    await deployed.fall()
    beats = await count(session, "select min(beats) from matins.instance where kind = 'trigger'")

    async def lived_on() -> bool:
        return await count(session, "select min(beats) from matins.instance where kind = 'trigger'") > beats

    await until(lived_on)
    assert await count(session, CLAIMS) == 0
    first = await send(ports[0], named(deployed))
    second = await send(ports[1], named(deployed))
    assert (first.status, second.status, second.json["id"]) == (202, 200, first.json["id"])
    occurrence = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, occurrence, ACCOUNTS)
    assert occurrence["fired_by"] == "cron"


async def test_a_trigger_whose_event_loop_is_blocked_still_answers(deployed: Deployment, session: Session) -> None:
    await deploy(deployed, described("cron", ["night"], KEY), BLOCKING_JOBS)
    (trigger,), (port,) = await begin(deployed, 1)
    for job in ("night", "blocks"):
        await trigger.logged("job registered", job=job)
        await deployed.fall(job)

    async def is_blocked() -> bool:
        return (deployed.folder / "blocked").exists()

    await until(is_blocked)
    assert (await send(port, named(deployed))).status == 202
    (deployed.folder / "go").touch()
    deployed.start("worker")
    assert (await assert_night(session, deployed, "night", ACCOUNTS))["fired_by"] == "cron"


async def test_a_platform_that_retries_at_another_trigger_is_answered_with_the_same(
    deployed: Deployment, session: Session
) -> None:
    await deploy(deployed, described("cron", ["night"], KEY))
    services, ports = await begin(deployed, 2, tick_interval=SELDOM)
    deployed.start("worker")
    await deployed.fall()
    call = named(deployed, identity="msg_retried")
    first = await send(ports[0], call)
    services[0].kill()
    again = [await send(ports[1], call) for _ in range(5)]
    assert {answer.status for answer in again} == {200}
    assert {answer.json["id"] for answer in again} == {first.json["id"]}
    await assert_night(session, deployed, "night", ACCOUNTS)


async def test_what_is_refused_is_counted_and_logged_and_nothing_is_written(
    deployed: Deployment, session: Session
) -> None:
    with Collector() as collector, running_issuer() as issuer:
        deployed.others |= collector.variables
        await deploy(deployed, described("cron", ["night", "gone"], KEY) + issuer.described("cloud", ["night"]))
        (trigger,), (port,) = await begin(deployed, 1)
        tables = ("signed_call", "audit", "attempt", "occurrence where claimed_at is not null")
        before = [await count(session, f"select count(*) from matins.{table}") for table in tables]
        now = int(time.time())
        calls = {
            "path": signed(KEY, "night", path="/v1/jobs/night/occurrences/"),
            "unproven_signature": signed(new_key(), "night"),
            "unproven_headers": Signed(path_of("night"), {}, b""),
            "unproven_timestamp": signed(KEY, "night", at=now - 400),
            "unproven_issuer": bearing(issuer.token(iss="https://elsewhere.example.com"), "night"),
            "unproven_audience": bearing(issuer.token(aud="https://elsewhere.example.com"), "night"),
            "unproven_expired": bearing(issuer.token(iat=now - 900, exp=now - 600), "night"),
            "unproven_age": bearing(issuer.token(iat=now - 9000), "night"),
            "unproven_caller": bearing(issuer.token(email="mallory@example.com"), "night"),
            "unproven_token": bearing("nothing", "night"),
            "forbidden": bearing(issuer.token(), "gone"),
            "unknown": signed(KEY, "gone"),
            "malformed": signed(KEY, "night", b"{"),
            "large": Signed(path_of("night"), {}, b"x" * 70_000),
            "off_schedule": signed(KEY, "night", b'{"scheduled_at": "%s"}' % later(deployed).encode()),
        }
        statuses = {outcome: (await send(port, call)).status for outcome, call in calls.items()}
        assert [outcome for outcome, status in statuses.items() if status == 401] == [
            outcome for outcome in calls if outcome.startswith("unproven_")
        ]
        assert [statuses[name] for name in list(calls)[-5:]] == [403, 404, 400, 413, 422]
        assert [await count(session, f"select count(*) from matins.{table}") for table in tables] == before
        logged = {line["error_class"] for line in trigger.lines("a call was refused")}
        assert logged == set(calls)
        trigger.terminate()
        assert await trigger.ended() == 0
        counted = Counter[str]()
        for point in collector.points_named("matins.calls"):
            counted[str(point.attributes["outcome"])] = int(point.value)
        assert counted == Counter(dict.fromkeys(calls, 1))
        said = trigger.log.read_text()
        assert "whsec_" not in said
        assert KEY.removeprefix("whsec_") not in said
        assert issuer.token().split(".")[0] not in said


def later(deployed: Deployment) -> str:
    """Give an instant of the last hours that is not on the schedule."""
    return deployed.night.replace(second=1).isoformat()


async def test_callers_that_cannot_be_stop_the_start_with_every_fault(deployed: Deployment) -> None:
    await deploy(deployed, described("cron", ["night"], KEY))
    deployed.folder.joinpath("callers.toml").write_text(
        "[callers.One]\njobs = []\n[callers.two]\nkeys = ['whsec_no']\n"
    )
    deployed.judging.wanted = False
    trigger = deployed.start("trigger")
    assert await trigger.ended() == 2
    said = trigger.log.read_text()
    for fault in ("callers.One: a caller's name", "callers.One: jobs: valid is", "callers.two: keys: valid is"):
        assert fault in said
    assert "whsec_no" not in said


async def test_an_address_in_use_is_named(deployed: Deployment) -> None:
    await deploy(deployed, described("cron", ["night"], KEY))
    deployed.judging.wanted = False
    (first,), (port,) = await begin(deployed, 1)
    second = deployed.start("trigger", api_address=f"127.0.0.1:{port}")
    assert await second.ended() == 1
    assert second.lines("service failed")[0]["part"] == "endpoint"
    first.terminate()
    assert await first.ended() == 0
