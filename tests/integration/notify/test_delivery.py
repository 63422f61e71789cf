"""Delivery through a real receiver: at least once, in order, retried with a bound, and never in anybody's way."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler

import anyio
import anyio.to_thread
import pytest

from shared.api_callers import read_key
from shared.channels import Log, Webhook
from shared.deliver import LEASE, SETTLE_DELIVERY, TAKE_DELIVERIES, deliver_pass
from shared.postgres import Database, Session
from tests.integration.notify.support import NOW, deliver, deliveries, delivering, later, open_alert, opened, tell, to
from tests.support.ledger import database_on, session_on
from tests.support.outside import new_key, sign
from tests.support.receivers import Receiver, answering, http_receiver

# Each steps through hours, a pass at a time.
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that takes everything."""
    with http_receiver() as running:
        yield running


def webhook(receiver: Receiver, *keys: str) -> Webhook:
    """Give a target that leads to a receiver."""
    return Webhook(receiver.url("/alerts"), tuple(map(read_key, keys or (new_key(),))))


async def test_a_message_is_signed_and_says_everything(
    session: Session, database: Database, receiver: Receiver
) -> None:
    keys = new_key(), new_key()
    await opened(session)
    assert await deliver(database, to(webhook(receiver, *keys))) == 1
    (request,) = receiver.requests
    identity, timestamp = request.headers["webhook-id"], int(request.headers["webhook-timestamp"])
    wanted = [sign(read_key(key), identity, timestamp, request.body) for key in keys]
    assert request.headers["webhook-signature"].split(" ") == wanted
    assert timestamp == int(NOW.timestamp())
    said = request.json
    assert said["type"] == "alert.opened"
    data = said["data"]
    assert data["id"] == identity == "matins-testing-1-20260825T021500"
    assert (data["kind"], data["severity"], data["job"]) == ("not_claimed", "critical", "invoice-run")
    assert data["more"] == "python -m trigger show invoice-run:2026-08-25T02:00Z"
    assert data["runbook"] == "docs/runbook.md#not_claimed"
    assert await deliveries(session) == [("opened", "delivered", 1)]
    assert await deliver(database, to(webhook(receiver)), later(hours=1)) == 0


async def test_a_receiver_that_was_down_for_ten_minutes_is_told_after(session: Session, database: Database) -> None:
    with http_receiver() as gone:
        channel = to(webhook(gone))
    await opened(session)
    for second in range(0, 600, 5):
        await deliver(database, channel, later(seconds=second))
    ((_, state, attempts),) = await deliveries(session)
    assert state == "waiting"
    assert 5 <= attempts <= 10
    with http_receiver() as back:
        for second in range(600, 1300, 5):
            await deliver(database, to(webhook(back)), later(seconds=second))
    assert len(back.requests) == 1
    ((_, state, _),) = await deliveries(session)
    assert state == "delivered"


async def test_a_receiver_that_answers_500_for_ever_is_given_up_visibly_and_disturbs_no_other(
    session: Session, database: Database, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    with http_receiver() as broken:
        broken.answer = answering(500, body=b"<b>out of order</b>\n")
        await opened(session)
        await deliver(database, to(webhook(receiver), "other"))
        channel = to(webhook(broken), "broken")
        for minute in range(0, 26 * 60, 10):
            await deliver(database, channel, later(minutes=minute))
    row = await session.fetchrow("select * from matins.delivery where channel = 'broken'")
    assert row is not None
    assert row["state"] == "given_up"
    assert row["error"] == "answered 500: <b>out of order</b>"
    assert row["ended_at"] <= later(hours=24)
    assert len(broken.requests) == row["attempts"] <= 160
    assert {request.headers["webhook-id"] for request in broken.requests} == {"matins-testing-1-20260825T021500"}
    assert len(receiver.requests) == 1
    assert "a notification was given up" in capsys.readouterr().out


async def test_ten_deliverers_at_once_send_one_message_each(
    session: Session, database_url: str, receiver: Receiver
) -> None:
    for number in range(5):
        await opened(session, subject=f"invoice-run:2026-08-2{number}T02:00Z")
    channel = to(webhook(receiver))
    async with database_on(database_url, 20) as database, anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(partial(deliver_pass, delivering(database, channel, f"instance {number}"), now=NOW))
    assert len(receiver.requests) == 5
    assert await deliveries(session) == [("opened", "delivered", 1)] * 5


async def test_what_was_sent_and_not_recorded_is_sent_again_with_the_same_id(
    session: Session, database: Database, receiver: Receiver
) -> None:
    await opened(session)
    channel, over = to(webhook(receiver)), threading.Event()

    def take_and_say_nothing(_: BaseHTTPRequestHandler) -> None:
        over.wait(30)

    receiver.answer = take_and_say_nothing
    async with anyio.create_task_group() as group:
        group.start_soon(partial(deliver_pass, delivering(database, channel), now=NOW))
        await anyio.to_thread.run_sync(receiver.wait_for, 1)
        # It dies where the receiver has the message, and the database does not know.
        group.cancel_scope.cancel()
    over.set()
    receiver.answer = None
    assert await deliver(database, channel, NOW + LEASE - timedelta(seconds=1)) == 0
    assert await deliver(database, channel, NOW + LEASE) == 1
    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.json == second.json
    assert await deliveries(session) == [("opened", "delivered", 2)]


async def test_an_end_is_never_told_before_its_beginning(session: Session, database: Database) -> None:
    with http_receiver() as receiver:
        receiver.answer = answering(503)
        channel = to(webhook(receiver))
        alert = await opened(session)
        await tell(session, alert, "repeated", at=later(minutes=1))
        await tell(session, alert, "closed", at=later(minutes=2))
        # The next alert of the same name, whose receivers may tell alerts apart by name alone.
        await opened(session, at=later(minutes=3))
        await deliver(database, channel, later(minutes=4))
        assert await deliveries(session) == [
            ("opened", "waiting", 1),
            ("repeated", "waiting", 0),
            ("closed", "waiting", 0),
            ("opened", "waiting", 0),
        ]
        receiver.answer = None
        del receiver.requests[:]
        for second in range(300, 330, 5):
            await deliver(database, channel, later(seconds=second))
    assert [request.json["type"] for request in receiver.requests] == ["alert.opened", "alert.closed", "alert.opened"]
    assert [state for _, state, _ in await deliveries(session)] == ["delivered", "superseded", "delivered", "delivered"]


async def test_a_channel_is_told_what_it_has_chosen(session: Session, database: Database, receiver: Receiver) -> None:
    await opened(session, kind="not_claimed", subject="a:2026-08-25T02:00Z", job="a")
    await opened(session, kind="partial", subject="a:2026-08-25T03:00Z", job="a")
    await opened(session, kind="failed", subject="b:2026-08-25T02:00Z", job="b")
    chosen = {
        "critical": {"severities": frozenset({"critical"})},
        "kinds": {"kinds": frozenset({"partial", "failed"})},
        "jobs": {"jobs": frozenset({"b"})},
        "both": {"jobs": frozenset({"a"}), "severities": frozenset({"warning"})},
    }
    told: dict[str, list[str]] = {}
    for name, choices in chosen.items():
        del receiver.requests[:]
        await deliver(database, to(webhook(receiver), name, **choices))
        told[name] = sorted(request.json["data"]["kind"] for request in receiver.requests)
    assert told == {
        "critical": ["failed", "not_claimed"],
        "kinds": ["failed", "partial"],
        "jobs": ["failed"],
        "both": ["partial"],
    }


async def test_a_late_commit_is_told_too(session: Session, database_url: str, database: Database) -> None:
    with http_receiver() as receiver:
        channel = to(webhook(receiver))
        async with session_on(database_url) as slow:
            transaction = slow.transaction()
            await transaction.start()
            await tell(slow, await open_alert(slow), "opened")
            await opened(session, subject="other")
            await deliver(database, channel, later(minutes=5))
            await transaction.commit()
        await deliver(database, channel, later(minutes=10))
    assert len(receiver.requests) == 2


async def test_an_unread_text_is_given_up_and_not_for_ever(session: Session, database: Database) -> None:
    alert = await open_alert(session)
    await tell(session, alert, "opened", opened_at="yesterday")
    await deliver(database, to(Log()))
    assert await deliveries(session) == [("opened", "waiting", 1)]
    for hour in range(26):
        await deliver(database, to(Log()), later(hours=hour))
    ((_, state, _),) = await deliveries(session)
    assert state == "given_up"


async def test_a_frozen_deliverer_that_comes_back_overwrites_nothing(
    session: Session, database: Database, receiver: Receiver
) -> None:
    await opened(session)
    channel = to(webhook(receiver))
    with http_receiver() as broken:
        broken.answer = answering(500)
        await deliver(database, to(webhook(broken)))
    # Another takes it over while the first believes it to be its own.
    taken = await session.fetch(TAKE_DELIVERIES, "receiver", "two", LEASE, 8, later(minutes=1))
    assert [row["attempts"] for row in taken] == [2]
    late = (taken[0]["id"], 1, "waiting", timedelta(hours=1), "too late", timedelta(hours=24), later(minutes=1))
    assert await session.fetchval(SETTLE_DELIVERY, *late) is None
    assert await deliver(database, channel, later(minutes=1)) == 0
    assert await deliver(database, channel, later(minutes=1) + LEASE) == 1
