"""The endpoint over real HTTP: who gets in, what they are told, and what a stranger, a flood and a slow sender get."""

import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey

from shared.health import Health
from shared.job import Job
from shared.postgres import Session
from shared.stopping import Stopping
from tests.integration.operate.night import expected_occurrence, nightly
from tests.support.fleet import prepared_for, until
from tests.support.ledger import running_occurrence, session_on
from tests.support.outside import (
    Answer,
    Issuer,
    Signed,
    bearing,
    described,
    new_key,
    path_of,
    post,
    running_issuer,
    signed,
)
from tests.support.proxy import Proxy
from trigger.api import Api
from trigger.api_request import MOST_BODY, READ_SECONDS

pytestmark = pytest.mark.timeout(120)

JOB = "invoice-run"
KEY, SECOND_KEY, SLOW_KEY, OTHERS_KEY = new_key(), new_key(), new_key(), new_key()
NOTHING = b'{"type":"about:blank","title":"Who calls is not proven","status":401}'


@dataclass
class Place:
    """An open endpoint, the instant that is due, and a session to look with."""

    api: Api
    health: Health
    callers: Path
    session: Session
    due: datetime
    stopping: Stopping

    async def post(self, call: Signed, method: str = "POST") -> Answer:
        """Send a call without keeping the loop from anything."""
        return await anyio.to_thread.run_sync(partial(post, self.api.port, call, method=method))

    async def written(self) -> tuple[int, ...]:
        """Count all that a call could write."""
        tables = ("signed_call", "audit", "attempt", "occurrence where claimed_at is not null")
        return tuple([await self.session.fetchval(f"select count(*) from matins.{table}") for table in tables])


def callers() -> str:
    return "".join(
        (
            described("cron", [JOB, "missing-run"], KEY, SECOND_KEY),
            described("slow", [JOB], SLOW_KEY, rate=2),
            described("other", ["other-run"], OTHERS_KEY),
        )
    )


@asynccontextmanager
async def opened(
    text: str,
    folder: Path,
    database_url: str,
    broker_url: str,
    prefix: str,
    through: str = "",
    job: Job | None = None,
) -> AsyncIterator[Place]:
    """Have an endpoint meanwhile, on a database where one occurrence, of `job`, has become due this second.

    `through` is the database's address for the endpoint, if it isn't that of the test.
    """
    file = folder / "callers.toml"
    file.write_text(text)
    jobs = [job or nightly(JOB)]
    more = {"api_callers_file": str(file), "api_address": "127.0.0.1:0"}
    prepared = prepared_for("trigger", jobs, through or database_url, broker_url, prefix, **more)

    async def examine(_session: Session) -> None:
        return

    health, stopping = Health(), Stopping()
    api = Api(prepared, health, examine)
    async with session_on(database_url) as session:
        await session.execute("insert into matins.environment (name) values ('test')")
        now: datetime = await session.fetchval("select date_trunc('second', clock_timestamp())")
        await expected_occurrence(session, jobs[0], now)
        assert api.wanted
        assert health.ready()["endpoint"] == "not open"
        async with anyio.create_task_group() as group:
            group.start_soon(api.serve, stopping)

            async def ready() -> bool:
                return health.ready()["endpoint"] is None

            await until(ready)
            try:
                yield Place(api, health, file, session, now, stopping)
            finally:
                stopping.request("the test is over")


@pytest.fixture
def place(tmp_path: Path, database_url: str, broker_url: str, prefix: str) -> Callable[..., Any]:
    """Give how to open an endpoint; tests enter it themselves, since it holds a task group."""
    return lambda text=None, through="": opened(
        callers() if text is None else text, tmp_path, database_url, broker_url, prefix, through
    )


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """An issuer of tokens."""
    with running_issuer() as running:
        yield running


def body_of(place: Place, **changes: Any) -> bytes:
    return json.dumps({"scheduled_at": place.due.isoformat()} | changes).encode()


async def test_a_signed_call_claims_and_a_replay_is_answered_with_the_same(place: Callable[..., Any]) -> None:
    async with place() as here:
        call = signed(KEY, JOB)
        first = await here.post(call)
        assert (first.status, first.headers["content-type"]) == (202, "application/json")
        occurrence = f"{JOB}:{here.due:%Y-%m-%dT%H:%M:%SZ}".replace(":00Z", "Z")
        assert first.json | {"id": 0} == {"occurrence": occurrence, "id": 0, "state": "claimed", "deduplicated": False}
        before = await here.written()
        again = await here.post(call)
        assert (again.status, again.json) == (200, first.json | {"deduplicated": True})
        assert await here.written() == before
        named = await here.post(signed(SECOND_KEY, JOB, body_of(here)))
        assert (named.status, named.json) == (200, first.json | {"deduplicated": True})
        told = await here.session.fetch("select kind, actor, reason from matins.audit order by id")
        assert [(row["kind"], row["actor"]) for row in told] == [("claim", "cron"), ("called", "cron")]
        fingerprint, identity = told[0]["reason"].partition("key ")[2].split(", webhook ")
        assert len(fingerprint) == 8
        assert identity == call.headers["webhook-id"]
        assert all("whsec_" not in row["reason"] for row in told)


def forgeries(here: Place) -> dict[str, Signed]:
    """Give calls that prove nothing, by what is wrong with them."""
    good = signed(KEY, JOB, body_of(here))
    now = int(time.time())
    signature = good.headers["webhook-signature"]

    def other(**headers: str | None) -> Signed:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return replace(good, headers={name: one for name, one in (good.headers | named).items() if one is not None})

    return {
        "no headers at all": Signed(good.path, {}, good.body),
        "no id": other(webhook_id=None),
        "no time": other(webhook_timestamp=None),
        "no signature": other(webhook_signature=None),
        "empty signature": other(webhook_signature=""),
        "another key": signed(new_key(), JOB, body_of(here)),
        "another body": replace(good, body=good.body + b" "),
        "truncated body": replace(good, body=good.body[:-1]),
        "no body": replace(good, body=b""),
        "another id": other(webhook_id="msg_other"),
        "another time": other(webhook_timestamp=str(now + 1)),
        "v1a alone": other(webhook_signature=signature.replace("v1,", "v1a,")),
        "a hundred signatures": other(webhook_signature=" ".join([signature] * 100)),
        "late": signed(KEY, JOB, at=now - 310),
        "early": signed(KEY, JOB, at=now + 310),
        "long ago": signed(KEY, JOB, at=1),
        "no number": other(webhook_timestamp="yesterday"),
        "negative": other(webhook_timestamp=f"-{now}"),
        "beyond 64 bits": other(webhook_timestamp=str(2**63)),
        "a dot in the id": signed(KEY, JOB, identity="a.b"),
        "a dot in the time": other(webhook_timestamp=f"{now}.0"),
        "an id without end": signed(KEY, JOB, identity="x" * 300),
        "a signature and a token": other(authorization="Bearer x"),
        "basic": Signed(good.path, {"authorization": "Basic dXNlcjpwYXNz"}, b""),
        "no token": Signed(good.path, {"authorization": "Bearer"}, b""),
    }


async def test_whoever_proves_nothing_is_told_nothing_always_in_the_same_words(place: Callable[..., Any]) -> None:
    async with place() as here:
        before = await here.written()
        for wrong, call in forgeries(here).items():
            refused = await here.post(call)
            assert (refused.status, refused.body) == (401, NOTHING), wrong
            assert refused.headers["content-type"] == "application/problem+json"
            assert refused.headers["www-authenticate"] == "Bearer"
        for job in (JOB, "other-run", "never-heard-of", "%00", "x" * 500):
            refused = await here.post(replace(signed(new_key(), JOB), path=path_of(job)))
            assert (refused.status, refused.body) == (401, NOTHING), job
        assert await here.written() == before


async def test_a_caller_is_not_told_which_other_jobs_there_are(place: Callable[..., Any]) -> None:
    async with place() as here:
        before = await here.written()
        answers = [await here.post(signed(OTHERS_KEY, job)) for job in (JOB, "never-heard-of")]
        assert [answer.status for answer in answers] == [403, 403]
        assert answers[0].body == answers[1].body
        assert (await here.post(signed(KEY, "missing-run"))).status == 404
        assert (await here.post(signed(OTHERS_KEY, "other-run"))).status == 404
        assert await here.written() == before


async def test_a_captured_call_cannot_be_turned_to_another_job(place: Callable[..., Any]) -> None:
    async with place() as here:
        call = signed(KEY, JOB)
        assert (await here.post(call)).status == 202
        turned = await here.post(replace(call, path=path_of("missing-run")))
        assert turned.status == 422
        bound = signed(KEY, JOB, json.dumps({"job": JOB}).encode())
        assert (await here.post(replace(bound, path=path_of("missing-run")))).status == 422
        assert (await here.post(bound)).status == 200


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"null", "application/json", 400),
        (b'{"scheduled_at": "2026-08-25T02:00:00"}', "application/json", 400),
        (b'{"scheduled_at": "tomorrow"}', "application/json", 400),
        (b'{"scheduled_at": "0001-01-01T00:00:00+14:00"}', "application/json", 400),
        (b'{"scheduled_at": 7}', "application/json", 400),
        (b'{"scheduled_At": null}', "application/json", 400),
        (b"[" * 60_000, "application/json", 400),
        (b"\xff\xfe", "application/json; charset=utf-16", 400),
        (b"{}", "text/plain", 415),
        (b"{}", "", 415),
        (b"{}", "application/json; charset=utf-8", 202),
        (b"{}", "Application/JSON", 202),
        (b'{"scheduled_at": null}', "application/json", 202),
        (b'{"scheduled_at": "2026-08-25T02:00:00Z"}', "application/json", 422),
        (b'{"scheduled_at": "9999-12-31T23:59:59Z"}', "application/json", 422),
        (b'{"job": "missing-run"}', "application/json", 422),
        (b"x" * (MOST_BODY + 1), "application/json", 413),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_body_is_read_as_it_should_be_or_refused(
    place: Callable[..., Any], body: bytes, media_type: str, status: int
) -> None:
    async with place() as here:
        call = signed(KEY, JOB, body)
        before = await here.written()
        answered = await here.post(replace(call, headers=call.headers | {"content-type": media_type}))
        assert answered.status == status
        assert (await here.written() == before) == (status != 202)


async def test_a_database_that_is_away_is_told_with_when_to_come_again(
    place: Callable[..., Any], database_url: str
) -> None:
    async with Proxy(database_url) as wire, place(through=wire.url) as here:
        call = signed(KEY, JOB)
        first = await here.post(call)
        assert first.status == 202
        wire.refuse()
        wire.reset()
        away = await here.post(call)
        assert (away.status, away.headers["retry-after"]) == (503, "5")
        assert away.json == {"type": "about:blank", "title": "Not at present", "status": 503}
        await wire.accept()
        again = await here.post(call)
        assert (again.status, again.json["id"]) == (200, first.json["id"])


async def test_everything_held_and_another_running_are_told_with_when_to_come_again(
    place: Callable[..., Any],
) -> None:
    async with place() as here:
        await here.session.execute(
            "update matins.environment set held_since = clock_timestamp(), held_reason = 'a restore'"
        )
        held = await here.post(signed(KEY, JOB))
        assert (held.status, held.headers["retry-after"]) == (503, "60")
        await here.session.execute("update matins.environment set held_since = null, held_reason = null")
        await running_occurrence(here.session, nightly(JOB), ["a"], scheduled_at=here.due - timedelta(days=1))
        overlap = await here.post(signed(KEY, JOB))
        assert (overlap.status, overlap.headers["retry-after"]) == (409, "60")
        assert f"{JOB}:" in overlap.json["detail"]


async def test_each_caller_has_a_rate_and_nobody_uses_up_anothers(place: Callable[..., Any]) -> None:
    async with place() as here:
        answers = [await here.post(signed(SLOW_KEY, JOB)) for _ in range(3)]
        assert [answer.status for answer in answers] == [202, 200, 429]
        assert 1 <= int(answers[2].headers["retry-after"]) <= 30
        assert (await here.post(signed(KEY, JOB))).status == 200


async def test_a_flood_of_forgeries_is_told_to_come_less_often_and_a_good_call_gets_through(
    place: Callable[..., Any],
) -> None:
    async with place() as here:
        forged = Signed(path_of(JOB), {}, b"")
        statuses = [(await here.post(forged)).status for _ in range(130)]
        assert statuses[:120] == [401] * 120
        assert set(statuses[120:]) <= {401, 429}
        assert 429 in statuses
        assert (await here.post(signed(KEY, JOB))).status == 202


async def test_keys_rotate_without_a_restart(
    place: Callable[..., Any],
) -> None:
    async with place(described("cron", [JOB], KEY)) as here:
        assert (await here.post(signed(KEY, JOB))).status == 202
        here.callers.write_text(described("cron", [JOB], KEY, SECOND_KEY))

        async def status(key: str) -> int:
            answered: Answer = await here.post(signed(key, JOB))
            return answered.status

        async def second() -> bool:
            return await status(SECOND_KEY) == 200

        await until(second)
        assert await status(KEY) == 200
        here.callers.write_text(described("cron", [JOB], SECOND_KEY))

        async def first_is_over() -> bool:
            return await status(KEY) == 401

        await until(first_is_over)
        assert await status(SECOND_KEY) == 200


async def test_other_paths_and_methods_are_refused(place: Callable[..., Any]) -> None:
    async with place() as here:
        good = signed(KEY, JOB)
        for path in ("/", "/v1/jobs", "/v1/jobs//occurrences", f"/v1/jobs/{JOB}/occurrences/", "/docs"):
            answer = await here.post(replace(good, path=path))
            # A redirection would have the sender show its token or its signature elsewhere.
            assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json"), path
            assert "location" not in answer.headers
        for method in ("GET", "PUT", "DELETE", "OPTIONS"):
            answer = await here.post(good, method)
            assert (answer.status, answer.headers["content-type"]) == (405, "application/problem+json")
            assert answer.headers["allow"] == "POST"
        assert (await here.post(good)).status == 202


def talk(port: int, *parts: bytes, wait: float = READ_SECONDS + 5) -> bytes:
    """Say something on a raw connection, and read what is answered until it is closed."""
    answered = b""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=wait)) as connection:
        try:
            for part in parts:
                connection.sendall(part)
            while part := connection.recv(65536):
                answered += part
        except ConnectionError:
            pass
    return answered


def drip(port: int, head: bytes, drop: bytes) -> tuple[bytes, float]:
    """Send a drop now and then; give what was answered, and after how many seconds the connection was closed."""
    began, answered = time.monotonic(), b""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=0.5)) as connection:
        connection.sendall(head)
        while time.monotonic() - began < 3 * READ_SECONDS:
            try:
                part = connection.recv(65536)
                answered += part
                if not part:
                    break
            except TimeoutError:
                try:
                    connection.sendall(drop)
                except ConnectionError:
                    break
            except ConnectionError:
                break
    return answered, time.monotonic() - began


async def test_a_request_that_does_not_end_is_cut_off_and_holds_nobody_up(place: Callable[..., Any]) -> None:
    line = f"POST {path_of(JOB)} HTTP/1.1\r\nHost: here\r\n".encode()
    slow = {
        "headers": (line, b"X-Drop: 1\r\n"),
        "first line": (b"P", b"O"),
        "nothing": (b"", b""),
        "body": (line + b"Content-Length: 1000\r\n\r\n", b"x"),
        "chunks": (line + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    }
    async with place() as here:
        ended: dict[str, tuple[bytes, float]] = {}

        async def be_slow(name: str, head: bytes, drop: bytes) -> None:
            ended[name] = await anyio.to_thread.run_sync(drip, here.api.port, head, drop)

        async with anyio.create_task_group() as group:
            for name, (head, drop) in slow.items():
                group.start_soon(be_slow, name, head, drop)
            assert (await here.post(signed(KEY, JOB))).status == 202
        for name, (answered, seconds) in ended.items():
            assert seconds < READ_SECONDS + 5, name
            assert answered == b"" or answered.startswith(b"HTTP/1.1 408 "), name
        assert ended["body"][0].startswith(b"HTTP/1.1 408 ")


async def test_what_is_too_large_is_refused_before_it_has_arrived(place: Callable[..., Any]) -> None:
    line = f"POST {path_of(JOB)} HTTP/1.1\r\nHost: here\r\n".encode()
    part = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
    large = {
        "a gigabyte announced": (line + b"Content-Length: 1000000000\r\n\r\n",),
        "a number without end": (line + b"Content-Length: " + b"9" * 18 + b"\r\n\r\n",),
        "chunks without end": (line + b"Transfer-Encoding: chunked\r\n\r\n", *[part] * 200),
    }
    async with place() as here:
        for name, parts in large.items():
            answered = await anyio.to_thread.run_sync(talk, here.api.port, *parts)
            # Who is still sending when the connection closes may not get to read the answer.
            assert answered.startswith(b"HTTP/1.1 413 ") or (name.startswith("chunks") and not answered), name
        for wrong in (
            line + b"X-Long: " + b"x" * 70_000,
            line + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            line + b"Content-Length: -5\r\n\r\n",
            line + b"Transfer-Encoding: gzip\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00",
        ):
            answered = await anyio.to_thread.run_sync(talk, here.api.port, wrong)
            assert answered == b"" or answered.split(b" ")[1] in {b"400", b"431", b"501"}, wrong[:80]
        short = signed(KEY, JOB, b"{}")
        head = "".join(f"{name}: {value}\r\n" for name, value in short.headers.items()).encode()
        # Less than was signed is counted by the length that was announced; the rest never comes.
        answered = await anyio.to_thread.run_sync(talk, here.api.port, line + head + b"Content-Length: 1\r\n\r\n{}")
        assert answered.startswith(b"HTTP/1.1 401 ")
        assert (await here.post(signed(KEY, JOB))).status == 202


async def test_a_token_claims_as_a_signature_does(place: Callable[..., Any], issuer: Issuer) -> None:
    async with place(issuer.described("cloud", [JOB])) as here:
        first = await here.post(bearing(issuer.token(), JOB))
        assert first.status == 202
        again = await here.post(bearing(issuer.token(), JOB, body_of(here)))
        assert (again.status, again.json) == (200, first.json | {"deduplicated": True})
        assert issuer.asked == 1
        told = await here.session.fetch("select actor, reason from matins.audit order by id")
        assert {tuple(row) for row in told} == {("cloud", f"called from outside, token of {issuer.url}")}


async def test_a_token_is_its_callers_who_may_call_for_the_job(place: Callable[..., Any], issuer: Issuer) -> None:
    both = issuer.described("others", ["other-run"]) + issuer.described("cloud", [JOB])
    async with place(both) as here:
        assert (await here.post(bearing(issuer.token(), JOB))).status == 202
        assert (
            await here.session.fetchval("select fired_by from matins.occurrence where claimed_at is not null")
            == "cloud"
        )
        assert (await here.post(bearing(issuer.token(), "third-run"))).status == 403


async def test_a_token_that_proves_nothing_is_told_nothing(place: Callable[..., Any], issuer: Issuer) -> None:
    now = int(time.time())
    public = OctKey.import_key(b"a secret that is as long as it should be")
    claims = issuer.claims()
    tokens = {
        "another issuer": issuer.token(iss="https://issuer.example.com"),
        "another audience": issuer.token(aud="https://other.example.com"),
        "another subject": issuer.token(email="mallory@example.com"),
        "an address that nobody has proved": issuer.token(email_verified=False),
        "expired": issuer.token(iat=now - 600, exp=now - 120),
        "too old": issuer.token(iat=now - 3 * 3600),
        "of the future": issuer.token(iat=now + 600),
        "not yet valid": issuer.token(nbf=now + 600),
        "without an age": issuer.token(iat=None),
        "without an end": issuer.token(exp=None),
        "an unknown key": issuer.token(key_id="unknown"),
        "another's key": issuer.token(key=RSAKey.generate_key(2048)),
        "HS256": jwt.encode({"alg": "HS256", "kid": "first"}, claims, public, algorithms=["HS256"]),
        "RS512": issuer.token(algorithm="RS512"),
        "none": "eyJhbGciOiJub25lIiwia2lkIjoiZmlyc3QifQ." + issuer.token().split(".")[1] + ".",
        "truncated": issuer.token()[:-20],
        "no token": "x.y.z",
        "empty": "",
    }
    async with place(issuer.described("cloud", [JOB])) as here:
        before = await here.written()
        for wrong, token in tokens.items():
            refused = await here.post(bearing(token, JOB))
            assert (refused.status, refused.body) == (401, NOTHING), wrong
        assert await here.written() == before
        assert issuer.asked <= 2, "an unknown key is not asked for again and again"
        assert (await here.post(bearing(issuer.token(), JOB))).status == 202


async def test_an_issuer_that_is_away_is_waited_for_until_its_keys_are_known(
    place: Callable[..., Any], issuer: Issuer
) -> None:
    issuer.up = False
    async with place(issuer.described("cloud", [JOB])) as here:
        away = await here.post(bearing(issuer.token(), JOB))
        assert (away.status, away.headers["retry-after"]) == (503, "5")
    issuer.up = True


async def test_known_keys_outlast_their_issuer(place: Callable[..., Any], issuer: Issuer) -> None:
    async with place(issuer.described("cloud", [JOB])) as here:
        assert (await here.post(bearing(issuer.token(), JOB))).status == 202
        issuer.up = False
        assert (await here.post(bearing(issuer.token(), JOB))).status == 200
        issuer.keys.append(ECKey.generate_key("P-256", {"kid": "second"}))
        assert (await here.post(bearing(issuer.token(algorithm="ES256"), JOB))).status == 401


async def test_what_was_begun_is_answered_when_the_endpoint_closes(
    place: Callable[..., Any], database_url: str
) -> None:
    async with place() as here:
        answers: list[int] = []

        async def call() -> None:
            answers.append((await here.post(signed(KEY, JOB))).status)

        async with (
            session_on(database_url) as looking,
            session_on_lock(here) as release,
            anyio.create_task_group() as group,
        ):
            group.start_soon(call)

            async def waits() -> Any:
                return await looking.fetchval(
                    "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%matins.job%'"
                )

            await until(waits)
            here.stopping.request("a drain")
            await release()
        assert answers == [202]


@asynccontextmanager
async def session_on_lock(here: Place) -> AsyncIterator[Callable[[], Any]]:
    """Hold the job's row meanwhile, as a trigger that decides would; give how to let go."""
    transaction = here.session.transaction()
    await transaction.start()
    await here.session.execute("select 1 from matins.job for update")
    yield transaction.commit


def test_without_callers_there_is_no_endpoint(database_url: str, broker_url: str, prefix: str) -> None:
    async def examine(_session: Session) -> None:
        return

    health = Health()
    prepared = prepared_for("trigger", [nightly(JOB)], database_url, broker_url, prefix)
    assert not Api(prepared, health, examine).wanted
    assert "endpoint" not in health.ready()
