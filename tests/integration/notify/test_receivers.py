"""Each kind of channel against a real server, and servers that behave as badly as they can."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from shared.api_callers import read_key
from shared.channel_http import Request, post
from shared.channel_send import send
from shared.channels import Alertmanager, Email, PagerDuty, Ping, Slack, Webhook
from shared.deliver import deliver_pass
from shared.notice import trial_notice
from tests.integration.notify.support import NOW, SUBJECT, deliver, deliveries, delivering, later, opened, tell, to
from tests.support.certificates import Authority
from tests.support.ledger import database_on, session_on
from tests.support.outside import new_key
from tests.support.receivers import Receiver, answering, http_receiver, mail_server

HELD = "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in%'"
NOTICE = trial_notice("matins-testing-test", "testing", NOW)

# Certificates are made, and an alert is followed through its minutes, a pass at a time.
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that takes everything."""
    with http_receiver() as running:
        yield running


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs the servers' certificates."""
    return Authority(tmp_path_factory.mktemp("certificates") / "authority")


async def test_an_alertmanager_is_told_again_until_it_is_over(database_url: str, receiver: Receiver) -> None:
    channel = to(Alertmanager(receiver.url("").rstrip("/"), token="a-token"), "prometheus")
    async with session_on(database_url) as session, database_on(database_url) as database:
        alert = await opened(session)
        for second in range(0, 600, 5):
            await deliver(database, channel, later(seconds=second))
        assert {request.path for request in receiver.requests} == {"/api/v2/alerts"}
        assert {request.headers["authorization"] for request in receiver.requests} == {"Bearer a-token"}
        ends = [request.json[0]["endsAt"] for request in receiver.requests]
        # The first, and one every 75 seconds, each good for five minutes: two may be lost.
        assert len(ends) == 9
        await tell(session, alert, "closed", at=later(seconds=600))
        del receiver.requests[:]
        for second in range(600, 1200, 5):
            await deliver(database, channel, later(seconds=second))
        (last,) = receiver.requests
        assert last.json[0]["endsAt"] == "2026-08-25T02:25:00.000Z"
        assert last.json[0]["labels"]["subject"] == SUBJECT


async def test_pagerduty_slack_and_a_switch_are_told_in_their_own_words(receiver: Receiver) -> None:
    assert (await send(to(PagerDuty("key", receiver.url("/v2/enqueue"))), NOTICE, NOW)).delivered
    assert (await send(to(Slack(receiver.url("/services/x"))), NOTICE, NOW)).delivered
    assert (await send(to(Ping(receiver.url("/uuid"))), NOTICE, NOW)).delivered
    first, second, third = receiver.requests
    assert third.path.startswith("/uuid/log?rid="), "a test is no ping"
    assert first.json["routing_key"] == "key"
    assert second.json["text"] == "[testing] warning: test: test notify"


async def test_a_mail_is_sent_over_tls_to_whom_it_is_for(authority: Authority) -> None:
    certificate = authority.sign("mail", "DNS:localhost")
    with mail_server(certificate) as mailbox:
        target = Email(
            "localhost",
            mailbox.port,
            "matins@example.com",
            ("day@example.com", "night@example.com"),
            username="matins",
            password="a-long-password",
            ca_file=str(authority.certificate),
        )
        outcome = await send(to(target), NOTICE, NOW)
    assert outcome.error == ""
    assert mailbox.encrypted == [True]
    assert mailbox.logins == [("matins", "a-long-password")]
    assert mailbox.recipients == [["day@example.com", "night@example.com"]]
    assert mailbox.mails[0]["X-Matins-Id"] == "matins-testing-test"
    assert "somebody wants to know" in mailbox.mails[0].get_content()


async def test_a_mail_server_that_offers_no_tls_or_is_not_known_gets_nothing(authority: Authority) -> None:
    with mail_server() as mailbox:
        target = Email("localhost", mailbox.port, "matins@example.com", ("night@example.com",))
        assert "STARTTLS" in (await send(to(target), NOTICE, NOW)).error
        plainly = Email("localhost", mailbox.port, "matins@example.com", ("night@example.com",), security="none")
        assert (await send(to(plainly), NOTICE, NOW)).delivered
        mailbox.refusal = "451 later"
        assert "later" in (await send(to(plainly), NOTICE, NOW)).error
    assert mailbox.encrypted == [False]
    with mail_server(authority.sign("stranger", "DNS:localhost")) as stranger:
        target = Email("localhost", stranger.port, "matins@example.com", ("night@example.com",))
        assert "certificate is refused" in (await send(to(target), NOTICE, NOW)).error
    assert stranger.mails == []


async def test_a_certificate_of_a_stranger_is_refused(authority: Authority, tmp_path: Path) -> None:
    target_of = Webhook
    key = read_key(new_key())
    with http_receiver(authority.sign("receiver", "DNS:localhost")) as receiver:
        known = target_of(receiver.url(), (key,), str(authority.certificate))
        assert (await send(to(known), NOTICE, NOW)).delivered
        unknown = target_of(receiver.url(), (key,))
        assert "certificate is refused" in (await send(to(unknown), NOTICE, NOW)).error
        other = Authority(tmp_path / "other")
        another = target_of(receiver.url(), (key,), str(other.certificate))
        assert "certificate is refused" in (await send(to(another), NOTICE, NOW)).error
    assert len(receiver.requests) == 1
    with http_receiver(authority.sign("elsewhere", "DNS:elsewhere.example.com")) as receiver:
        misnamed = target_of(receiver.url(), (key,), str(authority.certificate))
        assert "certificate is refused" in (await send(to(misnamed), NOTICE, NOW)).error
    assert receiver.requests == []


async def test_nobody_is_followed_elsewhere(receiver: Receiver) -> None:
    with http_receiver() as elsewhere:
        receiver.answer = answering(307, {"Location": elsewhere.url("/taken")})
        outcome = await post(Request(receiver.url(), b"{}"), now=NOW)
    assert outcome.error == "answered 307 and leads elsewhere, where it is not followed"
    assert elsewhere.requests == []


async def test_a_receiver_that_dribbles_is_cut_off(receiver: Receiver) -> None:
    over = threading.Event()

    def dribble(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not over.wait(0.02):
            handler.wfile.write(b"x")

    receiver.answer = dribble
    try:
        outcome = await post(Request(receiver.url(), b"{}"), now=NOW, seconds=0.5)
    finally:
        over.set()
    assert outcome.error == "no answer within 0.5 s"


async def test_an_answer_of_ten_megabytes_is_not_read(receiver: Receiver) -> None:
    receiver.answer = answering(200, body=b"x" * 10_000_000)
    assert (await post(Request(receiver.url(), b"{}"), now=NOW)).delivered
    receiver.answer = answering(400, body=b"y" * 10_000_000)
    outcome = await post(Request(receiver.url(), b"{}"), now=NOW)
    assert outcome.error.startswith("answered 400: yyy")
    assert len(outcome.error) < 400


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        ("120", timedelta(seconds=120)),
        ("Tue, 25 Aug 2026 02:25:00 GMT", timedelta(minutes=10)),
        ("999999999", timedelta(hours=1)),
        ("soon", None),
        ("-5", None),
        ("", None),
    ],
)
async def test_a_receiver_may_ask_to_be_left_alone(receiver: Receiver, asked: str, wait: timedelta | None) -> None:
    receiver.answer = answering(429, {"Retry-After": asked})
    assert (await post(Request(receiver.url(), b"{}"), now=NOW)).wait == wait


async def test_what_was_asked_for_is_kept(database_url: str, receiver: Receiver) -> None:
    receiver.answer = answering(429, {"Retry-After": "600"})
    channel = to(Webhook(receiver.url(), (read_key(new_key()),)))
    async with session_on(database_url) as session, database_on(database_url) as database:
        await opened(session)
        await deliver(database, channel)
        receiver.answer = None
        assert await deliver(database, channel, later(seconds=599)) == 0
        assert await deliver(database, channel, later(seconds=601)) == 1
        assert await deliveries(session) == [("opened", "delivered", 2)]


async def test_one_that_says_nothing_keeps_nobody_waiting(database_url: str, receiver: Receiver) -> None:
    silence = threading.Event()
    with http_receiver() as silent:

        def say_nothing(_: BaseHTTPRequestHandler) -> None:
            silence.wait(60)

        silent.answer = say_nothing
        slow, quick = (
            to(Webhook(one.url(), (read_key(new_key()),)), name)
            for one, name in ((silent, "slow"), (receiver, "quick"))
        )
        try:
            async with session_on(database_url) as session, database_on(database_url) as database:
                await opened(session)
                async with anyio.create_task_group() as group:
                    group.start_soon(partial(deliver_pass, delivering(database, slow), now=NOW))
                    await anyio.to_thread.run_sync(silent.wait_for, 1)
                    # It holds neither a lock nor a transaction meanwhile.
                    await deliver_pass(delivering(database, quick), now=NOW)
                    assert len(receiver.requests) == 1
                    assert await session.fetchval(HELD) == 0
                    group.cancel_scope.cancel()
        finally:
            silence.set()
