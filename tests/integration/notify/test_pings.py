"""The dead man's switch outside: of the watch, told of committed looks alone, and of a job's runs, each once."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

from shared.channels import Channel, Ping
from shared.deliver import deliver_pass
from shared.ping import run_id
from shared.ping_watch import LOOKS_A_PING, ping_watch_pass
from shared.postgres import Database, Session
from tests.integration.notify.support import NOW, deliver, deliveries, delivering, later, to
from tests.integration.trigger.support import DAY, DUE, MINUTE, claimed, end, job_at, planned
from tests.integration.watch.support import PASS, watch_on
from tests.support.ledger import database_on
from tests.support.receivers import Receiver, answering, http_receiver


@pytest.fixture
def switch() -> Iterator[Receiver]:
    """A dead man's switch."""
    with http_receiver() as running:
        yield running


def of_watch(switch: Receiver) -> tuple[Channel, Ping]:
    target = Ping(switch.url("/uuid-of-the-check"))
    return to(target, "dead-man"), target


def of_job(switch: Receiver, job: str = "nightly") -> Channel:
    return to(Ping(switch.url("/uuid-of-the-check?create=1"), job), "nightly-check")


def heard(switch: Receiver) -> list[str]:
    return [urlsplit(request.path).path.removeprefix("/uuid-of-the-check") or "success" for request in switch.requests]


def ids(switch: Receiver) -> list[str]:
    return [parse_qs(urlsplit(request.path).query)["rid"][0] for request in switch.requests]


async def test_a_switch_hears_of_looks_that_were_committed_and_of_nothing_else(
    session: Session, database: Database, switch: Receiver
) -> None:
    channel, target = of_watch(switch)
    ping = partial(ping_watch_pass, database, channel, target, "testing", PASS)
    assert await ping(now=NOW) is None
    await watch_on(database).watch_pass(NOW)
    async with database.session() as other:
        transaction = other.transaction()
        await transaction.start()
        await other.execute("update matins.watch set looked_at = $1", later(minutes=1))
        assert (await ping(now=later(seconds=1))) is not None
        # A pass that is not over, and one that was undone, tell nothing.
        assert await ping(now=later(minutes=1)) is None
        await transaction.rollback()
    assert await ping(now=later(minutes=2)) is None
    await watch_on(database).watch_pass(later(minutes=3))
    assert await ping(now=later(minutes=3)) is not None
    assert await ping(now=later(minutes=4)) is None
    assert heard(switch) == ["success", "success"]
    assert len(set(ids(switch))) == 2
    assert "the watch looked at 2026-08-25T02:18:00" in switch.requests[-1].body.decode()


async def test_ten_processes_tell_a_look_once_and_what_failed_is_told_at_the_next_turn(
    database_url: str, switch: Receiver
) -> None:
    channel, target = of_watch(switch)
    async with database_on(database_url, 10) as database:
        await watch_on(database).watch_pass(NOW)
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(partial(ping_watch_pass, database, channel, target, "testing", PASS, now=NOW))
        assert heard(switch) == ["success"]
        await watch_on(database).watch_pass(NOW + LOOKS_A_PING * PASS)
        switch.answer = answering(500)
        failed = await ping_watch_pass(database, channel, target, "testing", PASS, now=NOW + LOOKS_A_PING * PASS)
        assert failed is not None
        assert failed.error == "answered 500: ok"


async def test_nothing_is_told_while_everything_is_held(session: Session, database: Database, switch: Receiver) -> None:
    channel, target = of_watch(switch)
    await session.execute(
        "insert into matins.environment (name, held_since, held_reason) values ('testing', $1, 'restored')", NOW
    )
    assert await watch_on(database).watch_pass(NOW) is None
    assert await ping_watch_pass(database, channel, target, "testing", PASS, now=NOW) is None
    assert switch.requests == []


async def test_a_job_tells_its_beginning_and_its_end_each_once_with_one_id(
    session: Session, database: Database, switch: Receiver
) -> None:
    job, channel = job_at(), of_job(switch)
    await planned(session, job, DUE - DAY)
    await deliver(database, channel, DUE - MINUTE)
    await claimed(session, job)
    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(partial(deliver_pass, delivering(database, channel, f"i{number}"), now=DUE + MINUTE))
    assert heard(switch) == ["/start"]
    await end(session, job, DUE + 2 * MINUTE)
    await deliver(database, channel, DUE + 3 * MINUTE)
    await deliver(database, channel, DUE + 4 * MINUTE)
    assert heard(switch) == ["/start", "success"]
    assert set(ids(switch)) == {run_id("testing", "nightly:2026-08-25T02:00Z/1")}
    assert "nightly:2026-08-25T02:00Z, generation 1: succeeded" in switch.requests[-1].body.decode()
    assert parse_qs(urlsplit(switch.requests[-1].path).query)["create"] == ["1"]


async def test_a_switch_that_was_away_hears_first_of_the_beginning(
    session: Session, database: Database, switch: Receiver
) -> None:
    job, channel = job_at(), of_job(switch)
    await planned(session, job, DUE - DAY)
    await deliver(database, channel, DUE - MINUTE)
    await claimed(session, job)
    await session.execute(
        """update matins.occurrence set state = 'failed', closed_at = $1, report = '{}', lease_until = null,
                  total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0
            where state in ('claimed', 'running')""",
        DUE + MINUTE,
    )
    switch.answer = answering(503)
    await deliver(database, channel, DUE + 2 * MINUTE)
    assert await deliveries(session) == [("start", "waiting", 1), ("fail", "waiting", 0)]
    switch.answer = None
    del switch.requests[:]
    for second in range(0, 60, 5):
        await deliver(database, channel, DUE + 3 * MINUTE + timedelta(seconds=second))
    assert heard(switch) == ["/start", "/fail"]


async def test_a_new_switch_hears_nothing_of_the_past(session: Session, database: Database, switch: Receiver) -> None:
    job = job_at()
    await claimed(session, job)
    await end(session, job, DUE + MINUTE)
    await deliver(database, of_job(switch), DUE + 2 * MINUTE)
    assert switch.requests == []
    await claimed(session, job, DUE + DAY)
    await end(session, job, DUE + DAY)
    for minute in (1, 2):
        await deliver(database, of_job(switch), DUE + DAY + minute * MINUTE)
    assert heard(switch) == ["/start", "success"]
