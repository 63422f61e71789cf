"""Everybody fires one instant at once, each in their own way: it is claimed once, and everybody is answered."""

from dataclasses import dataclass, field

import anyio
import pytest

from schemas.occurrence import Identity
from shared.postgres import Session
from tests.faults.test_outside_callers import CLAIMS, JOBS, KEY, begin, deploy, named, send
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.nights import closed_occurrence, count
from tests.support.outside import Answer, Signed, bearing, described, running_issuer
from tests.support.processes import MINUTE, Deployment, Service
from trigger.operate import Order, fire
from trigger.plan import plan_ahead

pytestmark = [pytest.mark.drill, pytest.mark.timeout(180)]

COMMANDS = ("cronjob", "timer")
COMMANDS_WAIT = """select count(*) filter (where application_name like 'matins command%') = 2
                     from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"""
# Two commands, two operators, and at the triggers a platform's five calls and another's one.
ALL_WAIT = """select count(*) filter (where application_name like 'matins command%') = 2
                 and count(*) filter (where application_name = 'test') = 2
                 and count(*) filter (where application_name like 'matins trigger %') >= 6
                from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"""


@dataclass(slots=True)
class Race:
    """Everybody who fires the night, and what they were told."""

    deployed: Deployment
    ports: list[int]
    commands: list[Service] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)

    def start_commands(self) -> None:
        """Start what a CronJob and a systemd timer start."""
        at = ("--at", self.deployed.night.isoformat(), "--deduplicate", "--json", "--no-wait")
        for actor in COMMANDS:
            told = ("--reason", "nightly", "--actor", actor)
            self.commands.append(self.deployed.start("trigger", "fire", "night", *at, *told))

    async def call(self, port: int, call: Signed) -> None:
        """Call an endpoint."""
        self.answers.append(await send(port, call))

    async def operate(self, name: str) -> None:
        """Fire as an operator does."""
        order = Order(name, "because", f"instance-{name}")
        async with session_on(self.deployed.database_url) as own:
            self.outcomes.append(type(await fire(own, Identity("night", self.deployed.night), order)).__name__)

    async def wins(self) -> int:
        """Count who was told that the claim is theirs; a command ends with 0 either way."""
        assert {answer.status for answer in self.answers} <= {200, 202}
        assert [await command.ended() for command in self.commands] == [0, 0]
        said = [command.log.read_text() for command in self.commands]
        fired = ['"deduplicated": false' in one for one in said]
        assert fired == ['"deduplicated": true' not in one for one in said]
        return [answer.status for answer in self.answers].count(202) + self.outcomes.count("Won") + sum(fired)


async def race(session: Session, racing: Race, token: str) -> None:
    """Have everybody come while somebody decides about the job, and go on at once when that is over."""
    deployed, ports = racing.deployed, racing.ports
    async with anyio.create_task_group() as group, session.transaction():
        await session.execute("select 1 from matins.job for update")
        racing.start_commands()
        async with session_on(deployed.database_url) as own:
            await until(lambda: own.fetchval(COMMANDS_WAIT))
            for number in range(5):
                group.start_soon(racing.call, ports[number % 3], named(deployed, identity="msg_retried"))
            body = b'{"scheduled_at": "%s"}' % deployed.night.isoformat().encode()
            group.start_soon(racing.call, ports[2], bearing(token, "night", body))
            for name in ("ann", "bob"):
                group.start_soon(racing.operate, name)
            await until(lambda: own.fetchval(ALL_WAIT))
        # From here on the night is due, for the triggers too.
        before = deployed.night - MINUTE
        await session.execute("update matins.job set known_since = $1, planned_through = $1", before)
        await session.execute("update matins.instance set started_at = $1", before)
        await plan_ahead(session, deployed.jobs[0], 1, now=before)


@pytest.mark.parametrize("coordination", ["claim", "leader"])
async def test_every_way_of_firing_at_one_instant_claims_once_and_each_is_in_the_audit_trail(
    deployed: Deployment, session: Session, coordination: str
) -> None:
    """Three claimers, or a leader and two that would be; two platforms, two operators, a CronJob, a systemd timer."""
    jobs = JOBS.replace("PerAccount(effect)", f"PerAccount(effect), coordination={coordination!r}")
    with running_issuer() as issuer:
        await deploy(deployed, described("cron", ["night"], KEY) + issuer.described("cloud", ["night"]), jobs)
        triggers, ports = await begin(deployed, 3)
        deployed.start("worker")
        racing = Race(deployed, ports)
        await race(session, racing, issuer.token())
    wins = await racing.wins()
    occurrence = await closed_occurrence(session, deployed, "night")
    assert wins == (occurrence["fired_by"] is not None)
    assert {answer.json["id"] for answer in racing.answers} == {occurrence["id"]}
    assert await count(session, f"{CLAIMS} and occurrence_id = $1", occurrence["id"]) == 1
    actors = await session.fetch(
        "select actor from matins.audit where kind in ('claim', 'called') and actor is not null"
    )
    assert {row["actor"] for row in actors} == {"cron", "cloud", "ann", "bob", *COMMANDS}
    assert await count(session, "select count(*) from matins.attempt where won") == 1
    attempted = "select count(*) from matins.attempt where instance = any ($1)"
    instances = ["instance-ann", "instance-bob", *[await trigger.instance() for trigger in triggers]]
    least = len(instances) if coordination == "claim" else 2
    await until(lambda: session.fetchval(f"select ({attempted}) >= $2", instances, least))
