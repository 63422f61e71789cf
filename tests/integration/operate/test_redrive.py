"""Redriving: what is parked goes to the workers again, once, recorded, and does what the ledger still wants done."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import aio_pika
import anyio
import pytest
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from examples.servers.find import Broker
from schemas.message import WorkMessage, encode
from shared import clock
from shared.broker import BrokerUnavailable, WrongEnvironment
from shared.calls import AccountCall
from shared.job import Job, PerAccount
from shared.postgres import Session
from shared.start import Prepared
from shared.topology import Topology
from tests.integration.operate.night import ORDER, OTHER
from tests.support.broker import TIMEOUT, administrator, manage
from tests.support.broker_users import broker_users, make_user
from tests.support.fleet import closed_state, deploy, prepared_for, running_worker, until
from tests.support.ledger import job_with, ledger, running_occurrence, session_on
from tests.support.processes import Deployment, deployment
from tests.support.proxy import Proxy
from tests.support.servers import unique_name, with_path
from trigger.broker_rights import rights_under
from trigger.parked import Parked, list_parked
from trigger.redrive import Redriven, redrive
from worker.occurrences import WorkOccurrence

WAITING = "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
EFFECTS = "create table effect (id bigserial primary key, account text)"


async def insert(call: AccountCall) -> None:
    await call.connection.execute("insert into effect (account) values ($1)", call.account)


@dataclass(slots=True)
class Night:
    """An occurrence of two accounts that waits for its messages, and the parking beside it."""

    session: Session
    channel: AbstractChannel
    prepared: Prepared
    job: Job
    occurrence: WorkOccurrence

    @property
    def topology(self) -> Topology:
        return self.prepared.topology

    @property
    def url(self) -> str:
        return self.prepared.settings.secret("broker_url")

    @property
    def work_queue(self) -> str:
        return self.topology.work_queue(self.job.queue)

    def body(self, *accounts: str, occurrence_id: int = 0, generation: int = 1) -> bytes:
        return encode(
            WorkMessage(
                job=self.job.name,
                occurrence_id=occurrence_id or self.occurrence.id,
                scheduled_at=self.occurrence.scheduled_at,
                accounts=accounts,
                generation=generation,
                published_at=clock.utc_now(),
            )
        )

    async def park(self, body: bytes, message_id: str | None = "", **more: Any) -> str:
        """Have the broker give a message up, as it does one that its workers reject; give its id."""
        name = uuid4().hex if message_id == "" else message_id
        exchange = await self.channel.get_exchange(self.topology.work_exchange, ensure=False)
        message = aio_pika.Message(body, message_id=name, **more)
        parked = await self.depth(self.topology.parked_queue)
        await exchange.publish(message, self.topology.routing_key(self.job.queue))
        queue = await self.channel.get_queue(self.work_queue, ensure=False)
        await (await _first(queue)).reject(requeue=False)
        await self.holds(self.topology.parked_queue, parked + 1)
        return name or ""

    async def depth(self, queue: str) -> int:
        found = await self.channel.declare_queue(queue, passive=True)
        return found.declaration_result.message_count or 0

    async def holds(self, queue: str, messages: int) -> None:
        """Wait until a queue holds so many."""

        async def so_many() -> bool:
            return await self.depth(queue) == messages

        await until(so_many)

    async def redrive(self, *chosen: str, order: Any = ORDER) -> Redriven:
        return await redrive(self.session, self.url, self.topology, chosen or None, order, timeout=TIMEOUT)

    async def look(self, limit: int = 50) -> tuple[list[Parked], int]:
        recorded = self.topology.as_record()
        return await list_parked(self.session, self.url, self.topology, recorded, limit, timeout=TIMEOUT)

    async def entries(self) -> list[Any]:
        return await self.session.fetch("select * from matins.audit where kind = 'redrive' order by id")

    async def effects(self) -> list[str]:
        return [row["account"] for row in await self.session.fetch("select account from effect order by account")]


async def _first(queue: Any) -> AbstractIncomingMessage:
    async def look() -> Any:
        return await queue.get(fail=False)

    message: AbstractIncomingMessage = await until(look)
    return message


@asynccontextmanager
async def night_on(database_url: str, broker_url: str, prefix: str) -> AsyncIterator[Night]:
    job = job_with(PerAccount(insert))
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix)
    await deploy(prepared)
    async with session_on(database_url) as session, administrator(broker_url) as channel:
        await session.execute(EFFECTS)
        yield Night(session, channel, prepared, job, await running_occurrence(session, job, ["a", "b"]))


@pytest.fixture
async def night(database_url: str, broker_url: str, prefix: str) -> AsyncIterator[Night]:
    async with night_on(database_url, broker_url, prefix) as made:
        yield made


async def test_to_look_says_what_is_there_and_leaves_all_of_it_in_its_place(night: Night) -> None:
    await night.session.execute("update matins.ledger set state = 'cancelled', finished_at = now() where account = 'b'")
    ids = [await night.park(body) for body in (night.body("a", "b"), night.body("b"), b"{", night.body("c"))]
    for _ in range(2):
        assert [one.message for one in (await night.look())[0]] == ids, "in its old order"
    found, count = await night.look()
    assert ([one.message for one in found], count) == (ids, 4)
    assert [(one.waiting, one.count) for one in found] == [(1, 2), (0, 1), (0, 0), (0, 1)]
    first, _, unreadable, _ = found
    assert (first.died_of, first.died_in, first.occurrence) == (
        "rejected",
        night.work_queue,
        "invoice-run:2026-08-25T02:00Z",
    )
    assert first.died_at is not None
    assert abs((clock.utc_now() - first.died_at).total_seconds()) < 60
    assert (first.accounts, first.problem) == (("a", "b"), "")
    assert unreadable.problem.startswith("it cannot be read: ")
    assert len((await night.look(2))[0]) == 2
    await night.holds(night.topology.parked_queue, 4)
    assert await night.entries() == []


async def test_a_redriven_message_is_the_one_that_was_published_and_its_account_runs(night: Night) -> None:
    context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    body = night.body("a")
    chosen = await night.park(body, headers={"traceparent": context, "x-hostile": "1"})
    other = await night.park(night.body("b"))
    done = await night.redrive(chosen, "nobody")
    assert [(one.parked.message, one.end) for one in done.attempted] == [(chosen, "redriven")]
    assert (done.missing, done.left, done.problem) == (["nobody"], 1, "")
    [left], _ = await night.look()
    assert left.message == other
    (entry,) = await night.entries()
    assert (entry["job"], entry["occurrence_id"]) == ("invoice-run", night.occurrence.id)
    assert (entry["actor"], entry["actor_kind"], entry["reason"]) == (ORDER.actor, "operator", ORDER.reason)
    assert entry["detail"] == {
        "message": chosen,
        "generation": 1,
        "accounts": 1,
        "waiting": 1,
        "routing_key": night.topology.routing_key(night.job.queue),
        "confirmed": True,
    }
    queue = await night.channel.get_queue(night.work_queue, ensure=False)
    message = await _first(queue)
    assert (message.body, message.message_id, message.correlation_id) == (body, chosen, str(night.occurrence.identity))
    headers = {name: value for name, value in message.headers.items() if name != "x-delivery-count"}
    assert (headers, message.type, message.delivery_mode) == ({"traceparent": context}, "matins.work.v1", 2)
    await message.reject(requeue=True)
    async with running_worker(night.prepared):

        async def done_with() -> bool:
            return await night.effects() == ["a"]

        await until(done_with)


async def test_of_all_the_unreadable_ones_stay_and_say_why(night: Night) -> None:
    await night.park(b"not json")
    await night.park(night.body("a"), None)
    await night.park(night.body("a", occurrence_id=4711))
    await night.park(b'{"version":99}')
    await night.park(night.body("a").replace(b'"invoice-run"', b'"invoice\\u0000"'))
    await night.park(night.body("b"))
    done = await night.redrive()
    assert [one.end for one in done.attempted] == ["refused", "redriven", "refused", "refused", "refused", "redriven"]
    told = [one.told for one in done.ended("refused")]
    assert told[0].startswith("it cannot be read: ")
    assert told[1] == "its occurrence is not in this database"
    assert "version 99" in told[2]
    assert told[3].startswith("it names nothing that can be a row: ")
    assert done.left == 4
    await night.holds(night.topology.parked_queue, 4)
    await night.holds(night.work_queue, 2)
    assert [one.problem != "" for one in (await night.look())[0]] == [True] * 4
    assert len(await night.entries()) == 2


async def test_an_account_that_has_ended_stays_as_it_is_and_its_message_leaves(night: Night) -> None:
    await night.session.execute(
        """update matins.ledger set state = 'dead', epoch = 3, finished_at = now(), error_class = 'killed_worker',
                  error = 'its worker ended', starts = 3, started_at = now() where account = 'a'"""
    )
    before = (await ledger(night.session, night.occurrence.id))["a"]
    await night.park(night.body("a"))
    await night.park(night.body("b", generation=2))
    assert [one.waiting for one in (await night.look())[0]] == [0, 0]
    assert len((await night.redrive()).ended("redriven")) == 2
    await night.park(night.body("b"))
    await night.redrive()
    async with running_worker(night.prepared):
        assert await closed_state(night.session, night.occurrence.id) == "partial"
        await night.holds(night.work_queue, 0)
    assert await night.effects() == ["b"]
    assert (await ledger(night.session, night.occurrence.id))["a"] == before


async def test_a_message_that_no_queue_takes_stays_parked_and_nothing_is_said_to_be_done(night: Night) -> None:
    message = await night.park(night.body("a"))
    queue = await night.channel.get_queue(night.work_queue, ensure=False)
    await queue.unbind(night.topology.work_exchange, night.topology.routing_key(night.job.queue))
    done = await night.redrive(message)
    assert [one.end for one in done.attempted] == ["failed"]
    assert "has no queue" in done.attempted[0].told
    await night.holds(night.topology.parked_queue, 1)
    assert await night.entries() == []
    await queue.bind(night.topology.work_exchange, night.topology.routing_key(night.job.queue))
    assert len((await night.redrive(message)).ended("redriven")) == 1


async def test_who_may_not_publish_work_publishes_none_and_leaves_no_entry(night: Night, broker: Broker) -> None:
    held = rights_under(night.topology.prefix)["operator"]
    former = replace(held, write=held.write.replace("|work)$", ")$"))
    assert not former.permits("write", night.topology.work_exchange)
    for _ in range(2):
        await night.park(night.body("a"))
    name = unique_name()
    url = make_user(broker, night.url, name, former)
    try:
        done = await redrive(night.session, url, night.topology, None, ORDER, timeout=TIMEOUT)
    finally:
        manage(broker, "DELETE", f"/api/users/{name}")
    assert [one.end for one in done.attempted] == ["failed"]
    assert "ACCESS_REFUSED" in done.problem
    assert await night.entries() == []
    await night.holds(night.topology.parked_queue, 2)
    await night.holds(night.work_queue, 0)


async def test_a_publish_that_nobody_confirms_is_recorded_as_in_doubt_and_is_the_last(night: Night) -> None:
    for _ in range(2):
        await night.park(night.body("a"))
    results: list[Redriven] = []
    database_url = night.prepared.settings.secret("database_url")
    async with Proxy(night.url) as wire, session_on(database_url) as holder:
        url = with_path(wire.url, urlsplit(night.url).path[1:])

        async def act() -> None:
            async with session_on(database_url) as other:
                results.append(await redrive(other, url, night.topology, None, ORDER, timeout=2))

        async def waits() -> Any:
            return await night.session.fetchval(WAITING)

        async with anyio.create_task_group() as group:
            # The first message is taken, and judged only once what follows gets no answer any more.
            await holder.execute("begin; lock table matins.occurrence in access exclusive mode")
            group.start_soon(act)
            await until(waits)
            wire.to_client.hold()
            await holder.execute("rollback")
            await until(night.entries)
            wire.heal()
    (done,) = results
    assert [(one.end, one.told) for one in done.attempted] == [
        ("failed", "it may have been published: no confirm within 2 s")
    ]
    assert done.problem == done.attempted[0].told
    (entry,) = await night.entries()
    assert entry["detail"]["confirmed"] is False
    await night.holds(night.topology.parked_queue, 2)
    await night.holds(night.work_queue, 1)


async def test_a_message_goes_to_the_queue_that_its_job_has_now(night: Night) -> None:
    await night.park(night.body("a"))
    await night.session.execute("update matins.job set definition = jsonb_set(definition, '{queue}', '\"other\"')")
    [refused] = (await night.redrive()).attempted
    assert (refused.end, refused.told) == ("refused", "migrate has made no queue for its job")
    await night.session.execute(
        """update matins.environment set topology = jsonb_set(topology, '{bindings}',
                  (topology -> 'bindings') || jsonb_build_array(jsonb_build_array($1::text, $2::text, $3::text)))""",
        night.topology.work_exchange,
        f"{night.topology.prefix}.work.other",
        "other",
    )
    other = await night.channel.declare_queue(f"{night.topology.prefix}.work.other", durable=True)
    await other.bind(night.topology.work_exchange, "other")
    await night.redrive()
    await night.holds(other.name, 1)


async def test_of_two_who_redrive_at_once_each_takes_what_the_other_does_not(night: Night) -> None:
    for _ in range(20):
        await night.park(night.body("a"))
    counts: list[int] = []

    async def one(url: str, order: Any) -> None:
        async with session_on(url) as session:
            done = await redrive(session, night.url, night.topology, None, order, timeout=TIMEOUT)
            counts.append(len(done.ended("redriven")))

    async with anyio.create_task_group() as group:
        for order in (ORDER, OTHER):
            group.start_soon(one, night.prepared.settings.secret("database_url"), order)
    assert sum(counts) == 20
    await night.holds(night.work_queue, 20)
    await night.holds(night.topology.parked_queue, 0)
    assert len(await night.entries()) == 20


async def test_a_broker_that_is_away_or_of_another_environment_is_said_to_be_so(night: Night) -> None:
    message = await night.park(night.body("a"))
    with pytest.raises(BrokerUnavailable):
        await redrive(night.session, "amqp://guest@127.0.0.1:1/", night.topology, [message], ORDER, timeout=TIMEOUT)
    foreign = Topology(night.topology.prefix, "another", frozenset(), (1,), 20)
    with pytest.raises(WrongEnvironment):
        await redrive(night.session, night.url, foreign, [message], ORDER, timeout=TIMEOUT)
    await night.holds(night.topology.parked_queue, 1)


JOBS = "jobs = [nightly('night', PerAccount(effect))]"


@asynccontextmanager
async def parked_night(
    folder: Path, database_url: str, broker_url: str, prefix: str
) -> AsyncIterator[tuple[Deployment, Session, AbstractChannel]]:
    """Have a night whose one account waits for a message that is parked; no process runs."""
    async with (
        deployment(folder, database_url, broker_url, prefix) as deployed,
        session_on(database_url) as session,
        administrator(broker_url) as channel,
    ):
        deployed.declare(JOBS)
        await deployed.deploy(["a"])
        deployed.judging.wanted = False
        (job,) = deployed.jobs
        occurrence = await running_occurrence(session, job, ["a"], scheduled_at=deployed.night.replace(minute=1))
        prepared = prepared_for("worker", deployed.jobs, database_url, broker_url, prefix)
        made = Night(session, channel, prepared, job, occurrence)
        await made.park(made.body("a"), "the-one")
        yield deployed, session, channel


async def test_the_command_lists_redrives_and_says_what_it_did(
    tmp_path: Path, database_url: str, broker: Broker, broker_url: str, prefix: str
) -> None:
    async with parked_night(tmp_path, database_url, broker_url, prefix) as (deployed, session, channel):
        with broker_users(broker, broker_url, prefix) as addresses:
            operator = {"broker_url": addresses["operator"]}
            shown = await deployed.command("redrive", "--dry-run", **operator)
            assert "the-one" in shown
            assert "1 of its 1 accounts would be run" in shown
            listed = json.loads(await deployed.command("redrive", "--dry-run", "--json", **operator))
            assert (listed["parked"], listed["messages"][0]["message"]) == (1, "the-one")
            for words, told in (
                (("redrive",), "--reason: say why"),
                (("redrive", "--reason", "x"), "say which: --message ID"),
                (("redrive", "--reason", "x", "--all", "--message", "the-one"), "say which: --message ID"),
                (("redrive", "--dry-run", "--all"), "leave --message and --all out"),
                (("redrive", "--reason", "x", "--message", "the-other"), "'the-other' is not parked"),
            ):
                refused = deployed.start("trigger", *words, **operator)
                assert await refused.ended() == 2
                assert told in refused.log.read_text()
            said = await deployed.command("redrive", "--message", "the-one", "--reason", "mended", **operator)
            assert "1 messages were published again, for 1 accounts that wait" in said
            assert await session.fetchval("select reason from matins.audit where kind = 'redrive'") == "mended"
            done = json.loads(await deployed.command("redrive", "--all", "--reason", "again", "--json", **operator))
            assert done == {"redriven": [], "refused": [], "failed": [], "missing": [], "left": 0, "problem": ""}
        found = await channel.declare_queue(f"{prefix}.work.night", passive=True)
        assert found.declaration_result.message_count == 1
        away = deployed.start("trigger", "redrive", "--dry-run", broker_url="amqp://x:hidden@127.0.0.1:1/")
        assert await away.ended() == 2
        assert "hidden" not in away.log.read_text()


async def test_killed_between_publish_and_acknowledgement_its_copy_has_no_second_effect(
    tmp_path: Path, database_url: str, broker_url: str, prefix: str
) -> None:
    async with parked_night(tmp_path, database_url, broker_url, prefix) as (deployed, session, channel):

        async def waits() -> Any:
            return await session.fetchval(WAITING)

        async with session_on(database_url) as other, other.transaction():
            # Behind the publish, and before the acknowledgement.
            await other.execute("lock table matins.audit in share mode")
            killed = deployed.start("trigger", "redrive", "--all", "--reason", "mended")
            pid = await until(waits)
            killed.kill()
            await session.execute("select pg_terminate_backend($1, 5000)", pid)
        work, parked = f"{prefix}.work.night", f"{prefix}.dead.parked"
        assert (await channel.declare_queue(work, passive=True)).declaration_result.message_count == 1

        async def still_parked() -> bool:
            found = await channel.declare_queue(parked, passive=True)
            return found.declaration_result.message_count == 1

        await until(still_parked)
        deployed.start("worker")

        async def has_run() -> bool:
            return bool(await session.fetchval("select count(*) from effect"))

        await until(has_run)
        said = await deployed.command("redrive", "--all", "--reason", "mended")
        assert "1 messages were published again, for 0 accounts that wait" in said

        async def worked_off() -> bool:
            found = await channel.declare_queue(work, passive=True)
            return found.declaration_result.message_count == 0

        await until(worked_off)
        assert await session.fetchval("select count(*) from effect") == 1
        assert await session.fetchval("select count(*) from matins.audit where kind = 'redrive'") == 1
