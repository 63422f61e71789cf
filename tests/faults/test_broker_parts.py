"""Parts of the broker are emptied, deleted, filled up or forbidden under a fleet, which says which, and then goes on.

What is judged is the readiness as much as the work: whoever is woken must read there what to do.
"""

import urllib.parse
from contextlib import suppress
from typing import Any
from urllib.error import HTTPError

import anyio
import pytest

from examples.servers.find import Broker
from shared.postgres import Session
from tests.support.broker import administrator, manage, publishing, until_depth, virtual_host_of
from tests.support.fleet import until
from tests.support.nights import assert_night
from tests.support.outages import make_again, under_way, waiting_fleet
from tests.support.processes import Deployment
from tests.support.readiness import probe, ready, staying_alive, unready

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

ACCOUNTS = 200
KEY = "work"
SETTINGS = {"in_flight": "100", "broker_timeout": "2s"}
FORBIDDEN = {"configure": "^$", "write": "^$", "read": "^$"}
ALLOWED = {"configure": ".*", "write": ".*", "read": ".*"}
JOBS = """
async def slowly(call):
    await effect(call)
    await call.connection.execute("select pg_sleep(0.05)")

jobs = [
    nightly(name, PerAccount(slowly), queue="work")
    for name in ("purged", "deleted", "unbound", "gone", "full", "refused", "forbidden")
]
"""


async def test_parts_are_emptied_and_deleted(deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS)
    trigger, worker = await waiting_fleet(deployed, ACCOUNTS, SETTINGS)
    exchange, queue_name = f"{deployed.prefix}.work", f"{deployed.prefix}.work.{KEY}"
    async with staying_alive([trigger, worker]), administrator(deployed.broker_url) as channel:
        queue = await channel.get_queue(queue_name, ensure=False)

        await deployed.fall("purged")
        await under_way(session, deployed, "purged", ACCOUNTS)
        await queue.purge()

        await deployed.fall("deleted")
        await under_way(session, deployed, "deleted", ACCOUNTS)
        await queue.delete(if_unused=False, if_empty=False)
        await unready(worker, "consumer", f"queue {queue_name}: it does not exist; run migrate")
        await unready(trigger, "publisher", f"exchange {exchange} has no queue for '{KEY}'; run migrate")
        await make_again(deployed)
        await ready(trigger, worker)
        for job in ("purged", "deleted"):
            await assert_night(session, deployed, job, ACCOUNTS)

        await queue.unbind(exchange, KEY)
        await deployed.fall("unbound")
        await unready(trigger, "publisher", f"exchange {exchange} has no queue for '{KEY}'; run migrate")
        await make_again(deployed)
        await ready(trigger, worker)
        await assert_night(session, deployed, "unbound", ACCOUNTS)

        await channel.exchange_delete(exchange)
        await deployed.fall("gone")
        await unready(trigger, "publisher", f"no exchange '{exchange}'")
        await make_again(deployed)
        await ready(trigger, worker)
        await assert_night(session, deployed, "gone", ACCOUNTS)


async def test_a_queue_is_full_and_a_user_is_shut_out(deployed: Deployment, session: Session, broker: Broker) -> None:
    deployed.declare(JOBS)
    trigger, worker = await waiting_fleet(deployed, ACCOUNTS, SETTINGS)
    virtual_host = virtual_host_of(deployed.broker_url)

    async def managed(method: str, path: str, body: object = None) -> object:
        return await anyio.to_thread.run_sync(manage, broker, method, path, body)

    async def known_connections() -> list[str]:
        known: Any = await managed("GET", f"/api/vhosts/{virtual_host}/connections")
        return [str(one["name"]) for one in known]

    async with staying_alive([trigger]):
        policy = {"pattern": rf"^{deployed.prefix}\.work\.", "definition": {"max-length": 5}, "apply-to": "queues"}
        await managed("PUT", f"/api/policies/{virtual_host}/short", policy)
        worker.freeze()
        # A first batch is sent before anybody can know; the next one meets a full queue.
        await deployed.fall("full")
        async with publishing(deployed.broker_url) as look:
            await until_depth(look, f"{deployed.prefix}.work.{KEY}", 6)
        await deployed.fall("refused")
        await unready(trigger, "publisher", "is full or has no leader")
        worker.go_on()
        await managed("DELETE", f"/api/policies/{virtual_host}/short")
        await ready(trigger, worker)
        for job in ("full", "refused"):
            await assert_night(session, deployed, job, ACCOUNTS)

        user = urllib.parse.urlsplit(deployed.broker_url).username
        rights = f"/api/permissions/{virtual_host}/{user}"
        await deployed.fall("forbidden")
        await under_way(session, deployed, "forbidden", ACCOUNTS)
        await managed("DELETE", rights)

        async def shut_out() -> bool:
            """Close what the management knows of; it hears of a new connection after a while."""
            for one in await known_connections():
                with suppress(HTTPError):
                    await managed("DELETE", f"/api/connections/{urllib.parse.quote(one, safe='')}")
            return all([(await probe(service, "/readyz"))[0] == 503 for service in (trigger, worker)])

        await until(shut_out)
        await unready(trigger, "publisher", "has no access to it")
        await unready(worker, "consumer", "has no access to it")
        await managed("PUT", rights, ALLOWED)
        await ready(trigger, worker)
        await assert_night(session, deployed, "forbidden", ACCOUNTS)
