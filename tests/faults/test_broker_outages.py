"""A broker of the drill's own dies, restarts, freezes, runs short and loses everything: the fleet goes on by itself."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import anyio
import pytest

from examples.servers.find import Broker
from examples.servers.server import BrokerServer
from shared import clock
from shared.postgres import Session
from tests.support.broker import administrator, manage, publishing, until_depth
from tests.support.fleet import until
from tests.support.nights import assert_night, count, occurrence_of
from tests.support.outages import make_again, under_way, waiting_fleet
from tests.support.processes import Deployment, Service, deployment
from tests.support.readiness import ready, staying_alive, unready
from tests.support.servers import unique_name

pytestmark = [pytest.mark.drill, pytest.mark.timeout(180)]

# Longer than every lease, and than the time after which a message may be held for lost.
OUTAGE_SECONDS = 5.0
ACCOUNTS = 300
SETTINGS = {"in_flight": "200", "claim_lease": "3s"}
JOBS = """
async def slowly(call):
    await effect(call)
    await call.connection.execute("select pg_sleep(0.1)")


async def numbers(call):
    for number in range(int(call.cursor or 0), 300):
        await anyio.sleep(0.01)
        yield AccountAt(f"a{number:06d}", str(number + 1))


async def patiently(call):
    if call.account == "a000000":
        await call.connection.execute("select pg_sleep(6)")
    await effect(call)

names = ("executed", "idle", "frozen", "wiped", "memory", "memory-blocked", "disk", "disk-blocked")
jobs = [nightly(name, PerAccount(slowly), queue="work") for name in names]
jobs += [nightly("read", PerAccount(effect), queue="work", accounts=GeneratedAccounts(numbers, page_size=10))]
jobs += [nightly("patient", PerAccount(patiently), queue="work")]
"""


@pytest.fixture
async def broken(
    tmp_path: Path, database_url: str, throwaway_rabbit: BrokerServer, prefix: str
) -> AsyncIterator[Deployment]:
    """A deployment on a broker of its own."""
    async with deployment(tmp_path, database_url, throwaway_rabbit.url, prefix, broker_timeout="2s") as made:
        yield made


async def both_unready(trigger: Service, worker: Service, reason: str = "") -> None:
    await unready(trigger, "publisher", reason)
    await unready(worker, "consumer", reason)


async def test_it_dies_restarts_freezes_and_forgets(
    broken: Deployment, throwaway_rabbit: BrokerServer, session: Session
) -> None:
    broken.declare(JOBS)
    trigger, worker = await waiting_fleet(broken, ACCOUNTS, SETTINGS)
    async with staying_alive([trigger, worker]):
        await broken.fall("executed", "read")
        await under_way(session, broken, "executed", ACCOUNTS)
        assert 0 < (await occurrence_of(session, broken, "read"))["accounts_read"] < ACCOUNTS
        await anyio.to_thread.run_sync(throwaway_rabbit.kill)
        await both_unready(trigger, worker)
        await clock.sleep(OUTAGE_SECONDS)
        await anyio.to_thread.run_sync(throwaway_rabbit.start)
        await ready(trigger, worker)
        for job in ("executed", "read"):
            await assert_night(session, broken, job, ACCOUNTS)

        # Nobody publishes and nobody settles: only looking finds out.
        await anyio.to_thread.run_sync(throwaway_rabbit.restart)
        await ready(trigger, worker)
        await broken.fall("idle")
        await assert_night(session, broken, "idle", ACCOUNTS)

        await broken.fall("frozen")
        await under_way(session, broken, "frozen", ACCOUNTS)
        throwaway_rabbit.pause()
        await both_unready(trigger, worker)
        throwaway_rabbit.resume()
        await ready(trigger, worker)
        await assert_night(session, broken, "frozen", ACCOUNTS)

        await broken.fall("wiped")
        await under_way(session, broken, "wiped", ACCOUNTS)
        await anyio.to_thread.run_sync(throwaway_rabbit.wipe)
        await unready(worker, "consumer", "it does not exist; run migrate")
        await make_again(broken)
        await ready(trigger, worker)
        await assert_night(session, broken, "wiped", ACCOUNTS)
    assert trigger.alive
    assert worker.alive


ALARMS = {
    "memory": (
        ("set_vm_memory_high_watermark", "absolute", "1"),
        ("set_vm_memory_high_watermark", "absolute", "512MB"),
    ),
    "disk": (("set_disk_free_limit", "100000GB"), ("set_disk_free_limit", "50MB")),
}
# Node-wide and looked at once a minute by default; for the drill in seconds.
IMPATIENT = """
application:set_env(rabbit, channel_tick_interval, 500),
application:set_env(rabbit, consumer_timeout, 2000),
application:set_env(rabbit, dead_letter_worker_publisher_confirm_timeout, 1000).
"""


async def test_it_runs_short(broken: Deployment, throwaway_rabbit: BrokerServer, session: Session) -> None:
    async def control(*arguments: str) -> None:
        await anyio.to_thread.run_sync(throwaway_rabbit.control, *arguments)

    async def published() -> bool:
        return await count(session, "select max(through_position) from matins.publication") == ACCOUNTS

    async def claimed(job: str) -> bool:
        return bool((await occurrence_of(session, broken, job))["state"] == "running")

    broken.declare(JOBS)
    trigger, worker = await waiting_fleet(broken, ACCOUNTS, {})
    async with staying_alive([trigger, worker]):
        for job, (raised, over) in ALARMS.items():
            blocked = f"{job}-blocked"
            await broken.fall(job)
            await until(published)
            await control(*raised)
            # A blocked publisher holds no claim: the next night begins.
            await broken.fall(blocked)
            await unready(trigger, "publisher", "the broker blocks publishers: it is short of memory or disk")
            await until(partial(claimed, blocked))
            # What was published is done and acknowledged, on connections that are not blocked.
            await assert_night(session, broken, job, ACCOUNTS)
            await unready(trigger, "publisher", "the broker blocks publishers: it is short of memory or disk")
            await control(*over)
            await ready(trigger, worker)
            await assert_night(session, broken, blocked, ACCOUNTS)


async def test_it_loses_patience_and_its_dead_letters_have_nowhere_to_go(
    broken: Deployment, throwaway_rabbit: BrokerServer, session: Session
) -> None:
    await anyio.to_thread.run_sync(throwaway_rabbit.control, "eval", IMPATIENT)
    broken.declare(JOBS)
    trigger, worker = await waiting_fleet(broken, ACCOUNTS, SETTINGS)
    parked, accounted = f"{broken.prefix}.dead.parked", f"{broken.prefix}.dead.accounted"
    node = Broker(throwaway_rabbit.url, throwaway_rabbit.management_url)
    policy = {"pattern": f"^{parked}$", "definition": {"max-length": 1, "overflow": "reject-publish"}}

    async with staying_alive([trigger, worker]), publishing(broken.broker_url) as publisher:
        await broken.fall("patient")
        await worker.logged("queue_not_consumed", queue=f"{broken.prefix}.work.work")
        await ready(worker)
        await assert_night(session, broken, "patient", ACCOUNTS)

        async def letter() -> None:
            await publisher.publish(
                f"{broken.prefix}.work",
                "work",
                b"unreadable",
                message_id=unique_name(),
                correlation_id="",
                kind="",
                headers={},
            )
            broken.judging.strangers += 1

        async with administrator(broken.broker_url) as channel:
            for queue in (parked, accounted):
                await channel.queue_delete(queue)
        await letter()
        await unready(worker, "consumer", f"queue {accounted}: it does not exist; run migrate")
        await make_again(broken)
        await until_depth(publisher, parked, 1)
        await ready(worker)

        await anyio.to_thread.run_sync(manage, node, "PUT", "/api/policies/%2F/short", policy)
        await letter()
        await letter()
        # What does not fit waits where it was, until a person makes room.
        async with administrator(broken.broker_url) as channel:
            waiting = await channel.get_queue(parked, ensure=False)
            for _ in range(3):
                taken = await until(partial(waiting.get, fail=False))
                await taken.ack()
        await anyio.to_thread.run_sync(manage, node, "DELETE", "/api/policies/%2F/short")
