"""The page of the fleet says what `status`, `queues` and RabbitMQ say, and waits for no broker."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import aio_pika
import anyio.to_thread
import pytest
from justhtml import JustHTML

from examples.servers.find import Broker
from examples.servers.server import BrokerServer
from shared import clock
from shared.broker import declare_topology
from shared.definition import definition_of
from shared.differences import read_differences
from shared.limits import CLOCK_SKEW_SECONDS
from shared.migrate import enter_environment
from shared.postgres import Session
from shared.settings import load_settings
from shared.topology import Topology
from tests.console.night import HOSTILE
from tests.console.reading import Shown, shown
from tests.console.serving import Served, serving
from tests.integration.operate.night import closed_night, nightly
from tests.support.broker import administrator, manage, topology_of, virtual_host_of
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.logins import as_login, grant_rights, make_logins
from tests.support.proxy import Proxy
from tests.support.servers import unique_name, with_path
from trigger.broker_state import Managed
from trigger.fleet_state import read_fleet
from trigger.queues import list_queues
from trigger.status import read_status

# A page that waited for a server that does not answer would take seconds.
SOON = 2.0
SHORT = timedelta(seconds=1)


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    async with session_on(database_url) as opened:
        await enter_environment(opened, "test", create=True)
        yield opened


async def make_process(session: Session, name: str, kind: str = "worker", **more: Any) -> str:
    """Record a process; times are given as how long ago. Gives its id."""
    values: dict[str, Any] = {"host": f"host-{name}", "version": "0.1.0", "region": "", "skew": None} | more
    number = name.rjust(8, "0") + "f" * 24
    await session.execute(
        """insert into matins.instance (id, kind, host, version, region, message_version, tzdata_version, jobs, queues,
                                        definitions, started_at, seen_at, stopped_at, skew)
           values ($1, $2, $3, $4, $5, 1, $6, '{}', '[]', $7, now() - $8::interval, now() - $9::interval,
                   now() - $10::interval, $11)""",
        number,
        kind,
        values["host"],
        values["version"],
        values["region"],
        values.get("tzdata", "2026a"),
        values.get("definitions", {}),
        values.get("started", timedelta(hours=5)),
        values.get("seen", SHORT),
        values.get("stopped"),
        values["skew"],
    )
    return number


async def make_fleet(session: Session) -> None:
    minute, hour = timedelta(minutes=1), timedelta(hours=1)
    await make_process(session, "a1", "trigger", skew=0.25, region="eu", definitions={"night": "one"})
    await make_process(session, "b2", "trigger", skew=-CLOCK_SKEW_SECONDS - 1, version="0.2.0", tzdata="2026b")
    await make_process(session, "c3", host=HOSTILE[0], version=HOSTILE[3][:30], definitions={"night": "two"})
    await make_process(session, "d4", host=HOSTILE[7][:200], seen=30 * SHORT)
    await make_process(session, "e5", host=HOSTILE[1], seen=2 * minute)
    await make_process(session, "f6", seen=3 * hour, stopped=3 * hour - minute)
    await make_process(session, "07", seen=4 * hour, stopped=4 * hour - 4 * SHORT)
    await make_process(session, "08", seen=25 * hour)


async def page_of(console: Served) -> Shown:
    page = await console.get("/fleet")
    assert page.status == 200
    assert "<script>document" not in page.text
    assert "<img" not in page.text
    return shown(page.text)


async def test_who_lives_is_what_status_says_and_who_vanished_is_told_from_who_ended(
    database_url: str, session: Session
) -> None:
    await make_fleet(session)
    await session.execute(
        """insert into matins.lease (name, holder, epoch, until)
           values ('leader:night', $1, 7, now() + interval '1 hour'),
                  ('leader:other', 'gone-process', 2, now() + interval '1 h'),
                  ('leader:over', 'x', 1, now() - interval '1 s'), ('publish:night', 'x', 1, now() + interval '1 h')""",
        "a1".rjust(8, "0") + "f" * 24,
    )
    settings = load_settings({"MATINS_DATABASE_URL": database_url}, need=frozenset({"database_url"}))
    status = await read_status(session, settings)
    async with serving(database_url) as console:
        main = await page_of(console)
    rows = main.table("processes")
    assert [row[0] for row in rows] == [f"{one['kind']} {one['id'][:8]}" for one in status.instances]
    assert [row[0].split()[1] for row in rows] == ["000000a1", "000000b2", "000000c3", "000000d4"]
    assert rows[0][2:4] == ["0.1.0", "eu"]
    assert [row[6] for row in rows] == ["0.250 s ahead", "6.000 s behind, too far off", "not measured", "not measured"]
    assert [row[5].endswith("silent") for row in rows] == [False, False, False, True]
    assert rows[2][1] == HOSTILE[0]
    vanished = main.items("gone")
    assert [one.split()[1] for one in vanished] == ["000000e5", "000000f6"]
    assert HOSTILE[1] in vanished[0]
    assert "1 process has ended in order within the last day" in main.text
    facts = main.facts()
    assert facts["release"].startswith("0.1.0 in 2, 0.2.0 in 1, ")
    assert facts["release"].endswith("they differ")
    assert facts["time zones"] == "2026a in 3, 2026b in 1 they differ"
    assert facts["messages"] == "1 in 4"
    assert [row[:3] for row in main.table("leaders")] == [
        ["night", "000000a1 on host-a1", "7"],
        ["other", "gone-pro, silent", "2"],
    ]
    (different,) = await read_differences(session)
    assert f"night: live processes hold {len(different.sides)} definitions since" in main.text
    assert "never current, one: trigger 000000a1" in main.text


async def test_the_database_and_its_schema_are_as_the_server_says(database_url: str, session: Session) -> None:
    await make_process(session, "a1", "worker")
    async with serving(database_url) as console:
        main = await page_of(console)
        facts = main.facts()
        assert "no trigger is live: nothing is planned, claimed or published" in main.text
        assert "no worker is live" not in main.text
        version = await session.fetchval("select current_setting('server_version')")
        assert facts["Server"].startswith(f"PostgreSQL {version}, since ")
        name = await session.fetchval("select current_database()")
        size = await session.fetchval("select pg_database_size(current_database())")
        assert facts["Database"] == f"{name}, {size / 1048576:.1f} MiB"
        last = await session.fetchval("select max(version) from matins.migration")
        assert facts["Schema"].startswith(f"{last:04d} ")
        await session.execute("insert into matins.migration values (9000, 'later', '', now(), 1)")

        async def later() -> bool:
            return (await page_of(console)).facts()["Schema"].endswith("of a later release")

        await until(later)


async def test_with_nobody_and_nothing_it_says_what_would_be_there(database_url: str, session: Session) -> None:
    async with serving(database_url) as console:
        main = await page_of(console)
    for told in (
        "No process lives.",
        "No job is led.",
        "All live processes declare each job alike.",
        "The queues cannot be seen: MATINS_BROKER_URL is not set.",
        "How many are parked is not known while the queues cannot be seen.",
    ):
        assert told in main.text


@dataclass(slots=True)
class Queues:
    """Queues on a virtual host, as migrate makes them for a job."""

    url: str
    topology: Topology
    settings: dict[str, str]

    async def fill(self) -> None:
        """Have some wait, some parked, some in somebody's hands, and an old queue that is not empty."""
        async with administrator(self.url) as channel:
            for queue, count in ((self.topology.work_queue("night"), 7), (self.topology.parked_queue, 3)):
                for _ in range(count):
                    await channel.default_exchange.publish(aio_pika.Message(b"{}"), queue)
            old = await channel.declare_queue(f"{self.topology.prefix}.work.night@old", durable=True)
            await channel.default_exchange.publish(aio_pika.Message(b"{}"), old.name)


@asynccontextmanager
async def queues_on(session: Session, broker_url: str, prefix: str) -> AsyncIterator[Queues]:
    topology = topology_of(prefix, queues=frozenset({"night"}), delays=(1, 5))
    await declare_topology(broker_url, topology, timeout=20)
    recorded = topology.as_record()
    recorded["queues"] |= {f"{prefix}.work.night@old": {}, f"{prefix}.work.gone": {}}
    await session.execute("update matins.environment set topology = $1", recorded)
    job = nightly("night", queue="night")
    await session.execute(
        """insert into matins.job (name, revision, definition, fingerprint, known_since, planned_through)
           values ('night', 1, $1, '', now(), now())""",
        definition_of(job),
    )
    made = Queues(broker_url, topology, {"prefix": prefix, "delays": "1,5"})
    await made.fill()
    yield made


def numbers(row: list[str]) -> list[str]:
    """Give what a row of the queues' table says but for the tags, and for what the management interface adds."""
    return [row[0].split()[0], row[1], row[2], row[4], row[7]]


async def seen(console: Served, wanted: str) -> Shown:
    """Ask for the page until it says something."""

    async def look() -> Shown | None:
        main = await page_of(console)
        return main if wanted in main.text else None

    main: Shown = await until(look)
    return main


async def test_queues_are_as_the_command_and_rabbitmq_say(
    database_url: str, session: Session, broker: Broker, broker_url: str, prefix: str
) -> None:
    assert broker.management_url is not None
    await make_process(session, "a1")
    async with queues_on(session, broker_url, prefix) as made, administrator(broker_url) as channel:
        # In somebody's hands.
        work = await channel.get_queue(made.topology.work_queue("night"), ensure=False)
        held = [await work.get(fail=False) for _ in range(2)]
        assert None not in held
        path = f"/api/queues/{virtual_host_of(broker_url)}/{work.name}"

        async def counted() -> bool:
            told = await anyio.to_thread.run_sync(manage, broker, "GET", path)
            return (told.get("messages_ready"), told.get("messages_unacknowledged")) == (5, 2)

        await until(counted)
        async with serving(database_url, broker_url, management_url=broker.management_url, **made.settings) as console:
            main = await seen(console, "the management interface told at")
        rows = main.table("queues")
        expected = await list_queues(session, broker_url, made.topology, timeout=5)
        assert [numbers(row) for row in rows] == [
            [
                one.queue,
                "missing" if one.messages is None else "current" if one.current else "old",
                "-" if one.messages is None else str(one.messages),
                "-" if one.consumers is None else str(one.consumers),
                str(len(one.used_by)),
            ]
            for one in expected
        ]
        by_name = {row[0].split()[0]: row for row in rows}
        assert by_name[work.name][2:4] == ["5", "2"]
        assert by_name[f"{prefix}.work.night@old"][0].endswith("old, and not empty")
        assert by_name[f"{prefix}.work.gone"][0].endswith("missing: run migrate")
        nodes = await anyio.to_thread.run_sync(manage, broker, "GET", "/api/nodes")
        assert [row[:2] for row in main.table("nodes")] == [[one["name"], "no alarm"] for one in nodes]


async def test_parked_messages_are_counted_and_not_touched(
    database_url: str, session: Session, broker_url: str, prefix: str
) -> None:
    await closed_night(session)
    await session.execute("update matins.occurrence set closed_at = now() - interval '1 hour' where dead > 0")
    async with queues_on(session, broker_url, prefix) as made:
        async with serving(database_url, broker_url, **made.settings) as console:
            for _ in range(4):
                await page_of(console)
            main = await seen(console, "Parked messages 3")
            assert "python -m trigger redrive --dry-run" in main.text
            assert main.items("gone") == [f"{main.node.query('.gone a')[0].to_text()}: 1 dead, closed {_minute(main)}"]
            assert main.links()["invoice-run:2026-08-25T02:00Z"] == "/occurrences/invoice-run:2026-08-25T02:00Z"
            assert "set MATINS_MANAGEMENT_URL for them" in main.text
        async with administrator(broker_url) as channel:
            parked = await channel.get_queue(made.topology.parked_queue, ensure=False)
            message = await parked.get()
            assert message is not None
            assert not message.redelivered
            assert message.headers.get("x-delivery-count", 0) == 0


def _minute(main: Shown) -> str:
    return str(main.node.query(".gone time")[0].to_text())


async def quickly(console: Served) -> Shown:
    began = clock.monotonic()
    main = await page_of(console)
    assert clock.monotonic() - began < SOON
    return main


async def test_a_broker_that_is_frozen_makes_no_page_wait_and_what_was_known_stays(
    database_url: str, session: Session, broker_url: str, prefix: str
) -> None:
    async with queues_on(session, broker_url, prefix) as made, Proxy(broker_url) as wire:
        url = with_path(wire.url, urlsplit(broker_url).path[1:])
        wire.hold()
        async with serving(database_url, url, **made.settings) as console:
            main = await quickly(console)
            assert "RabbitMQ could not be asked. Nothing is known of it yet" in main.text
            assert main.table("queues") == []
            wire.heal()
            known = (await seen(console, "Parked messages 3")).table("queues")
            wire.hold()
            main = await seen(console, "RabbitMQ could not be asked. What stands here is what was known at")
            assert main.table("queues") == known
            for _ in range(3):
                main = await quickly(console)
            assert "Parked messages 3" in main.text
            wire.refuse()
            wire.reset()
            wire.heal()
            assert (await quickly(console)).table("queues") == known
            await wire.accept()

            async def is_well() -> bool:
                return "could not be asked" not in (await page_of(console)).text

            await until(is_well)


@pytest.mark.parametrize("fault", ["hold", "refuse"])
async def test_without_the_management_interface_the_queues_are_still_seen(
    database_url: str, session: Session, broker: Broker, broker_url: str, prefix: str, fault: str
) -> None:
    assert broker.management_url is not None
    async with queues_on(session, broker_url, prefix) as made, Proxy(broker.management_url) as wire:
        getattr(wire, fault)()
        async with serving(database_url, broker_url, management_url=wire.url, **made.settings) as console:
            await quickly(console)
            main = await seen(console, "Parked messages 3")
            assert "RabbitMQ's management interface could not be asked. Nothing is known of it yet" in main.text
            row = {row[0].split()[0]: row for row in main.table("queues")}[made.topology.work_queue("night")]
            assert row[2:7] == ["7", "-", "0", "-", "-"]
            assert row[0].endswith("nobody consumes it")
            await quickly(console)
            wire.heal()
            await wire.accept()
            await seen(console, "Nodes of RabbitMQ")
            getattr(wire, fault)()
            wire.reset()
            main = await seen(console, "management interface could not be asked. What stands here is what was known at")
            assert main.table("nodes")


@contextmanager
def user_with(broker: Broker, broker_url: str, tags: str) -> Iterator[str]:
    """Have a user of the management interface with these tags; give the address."""
    name = unique_name()
    manage(broker, "PUT", f"/api/users/{name}", {"password": "hidden-word", "tags": tags})
    everything = {"configure": "", "write": "", "read": ""}
    manage(broker, "PUT", f"/api/permissions/{virtual_host_of(broker_url)}/{name}", everything)
    address = urlsplit(broker.management_url or "")
    try:
        yield address._replace(netloc=f"{name}:hidden-word@{address.hostname}:{address.port}").geturl()
    finally:
        manage(broker, "DELETE", f"/api/users/{name}")


@pytest.mark.parametrize(
    ("tags", "told"),
    [
        ("monitoring", "Nodes of RabbitMQ"),
        ("management", "so that alarms are not seen: the tag monitoring lets it"),
        ("", "RabbitMQ's management interface could not be asked. Nothing is known of it yet"),
    ],
)
async def test_what_the_user_of_the_management_interface_may_not_see_is_named(
    database_url: str, session: Session, broker: Broker, broker_url: str, prefix: str, tags: str, told: str
) -> None:
    async with queues_on(session, broker_url, prefix) as made:
        with user_with(broker, broker_url, tags) as url:
            async with serving(database_url, broker_url, management_url=url, **made.settings) as console:
                main = await seen(console, told)
                assert "hidden-word" not in main.text


async def test_something_else_at_the_management_s_address_is_said_to_be_no_answer(
    database_url: str, session: Session, broker_url: str, prefix: str
) -> None:
    async with queues_on(session, broker_url, prefix) as made, serving(database_url) as another:
        url = f"{another.address}"
        async with serving(database_url, broker_url, management_url=url, **made.settings) as console:
            main = await seen(console, "RabbitMQ's management interface could not be asked.")
            assert "HTTPError" in main.text


@pytest.mark.drill
async def test_an_alarm_of_a_node_is_told(
    database_url: str, session: Session, throwaway_rabbit: BrokerServer, prefix: str
) -> None:
    async with queues_on(session, throwaway_rabbit.url, prefix) as made:
        throwaway_rabbit.control("set_vm_memory_high_watermark", "absolute", "1")
        address = {"management_url": throwaway_rabbit.management_url}
        async with serving(database_url, throwaway_rabbit.url, **address, **made.settings) as console:
            main = await seen(console, "is short of memory.")
            assert main.table("nodes")[0][1] == "memory alarm"


def test_each_shortage_is_named() -> None:
    node = {"name": "one", "running": True, "mem_alarm": True, "disk_free_alarm": True}
    well = {"name": "two", "running": True, "mem_alarm": False, "disk_free_alarm": False}
    ended = {"name": "three", "running": False, "mem_alarm": None, "disk_free_alarm": None}
    assert Managed("", {}, [node, well, ended]).alarms == ["one is short of memory and disk", "three does not run"]
    assert Managed("", {}, None).alarms == []


async def test_a_login_that_may_only_read_sees_alerts_the_trail_and_the_fleet(
    database_url: str, session: Session
) -> None:
    await make_logins(session)
    await grant_rights(session, {})
    await make_fleet(session)
    await closed_night(session)
    async with serving(as_login(database_url, "reader")) as console:
        for path in ("/fleet", "/audit", "/audit?job=x&actor=ann", "/alerts", "/alerts?show=all"):
            page = await console.get(path)
            assert page.status == 200, JustHTML(page.text).query("main")[0].to_text()


async def test_the_fleet_is_read_in_a_session_of_anybody_s(session: Session) -> None:
    await make_fleet(session)
    fleet = await read_fleet(session)
    assert (len(fleet.processes), len(fleet.vanished), fleet.ended) == (4, 2, 1)
    assert [one["is_skewed"] for one in fleet.processes] == [False, True, None, None]
