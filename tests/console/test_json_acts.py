"""Acting by JSON: the same acts as the forms, in the name of who sends them, and by nobody who may not."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from schemas.occurrence import Identity
from shared.close import close
from tests.console.night import HOSTILE, JOB
from tests.console.serving import Answer
from tests.console.test_json_answers import told
from tests.console.test_refusals import OPERATE, READ, Scene, scene
from tests.console.visitor import ORIGIN, Visitor
from tests.support.ledger import session_on
from trigger.console.acting import ACTS
from trigger.console.acts import Act
from trigger.console.api.orders import example_body

WHY: Final = "the price list is mended"
# What each act would be done with, so that nothing but who sends it is in its way.
BODIES: Final[dict[str, dict[str, Any]]] = {
    "run": {"what": "ad-hoc"},
    "backfill": {"from": "2026-01-01T00:00Z", "until": "2026-01-02T00:00Z"},
    "maintenance": {"for": "1h"},
    "silence": {"for": "1h"},
}


@dataclass
class Program:
    """A program with a token, at a console at night."""

    here: Scene
    headers: dict[str, str] = field(default_factory=lambda: {"Authorization": f"Bearer {OPERATE}"})

    async def order(self, path: str, body: Any, **headers: str | None) -> Answer:
        """Send a body; one that is bytes goes as it is."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        usual = {"Origin": None, "Sec_Fetch_Site": None, "Content_Type": "application/json"}
        visitor = Visitor(self.here.console, dict(self.headers))
        return await visitor.post(f"/api/v1{path}", content, **{**usual, **headers})

    async def done(self, path: str, **fields: Any) -> list[str]:
        answer = await self.order(path, {"reason": WHY, **fields})
        assert answer.status == 200, answer.text
        found = json.loads(answer.text)
        assert (found["done"], found["headings"], found["rows"]) == (True, [], [])
        lines: list[str] = found["told"]
        return lines

    async def refused(self, path: str, **fields: Any) -> tuple[int, str]:
        return told(await self.order(path, {"reason": WHY, **fields}))

    async def trail(self, kind: str) -> list[tuple[Any, ...]]:
        """Give who did something of a kind, and why."""
        async with session_on(self.here.database_url) as session:
            rows = await session.fetch(
                "select actor, actor_kind, reason from matins.audit where kind = $1 and actor like 'token:%'", kind
            )
        return [tuple(row) for row in rows]


IN_ITS_NAME: Final = [("token:operate-it", "operator", WHY)]


@asynccontextmanager
async def program(database_url: str) -> AsyncIterator[Program]:
    async with scene(database_url) as here:
        yield Program(here)


async def test_a_program_acts_in_its_own_name(database_url: str) -> None:
    async with program(database_url) as one:
        assert (await one.done(f"/jobs/{JOB}/pause", meanwhile="hold"))[0].startswith(f"{JOB} is paused: what falls")
        assert await one.trail("pause") == IN_ITS_NAME
        assert "is resumed" in (await one.done(f"/jobs/{JOB}/resume"))[0]
        status, detail = await one.refused(f"/jobs/{JOB}/resume")
        assert (status, "is not paused" in detail) == (422, True)
        (claimed,) = await one.done("/jobs/job-1/run", what="ad-hoc")
        assert claimed.endswith("is claimed; any live trigger goes on with it")
        assert await one.trail("claim") == IN_ITS_NAME
        assert "is acknowledged" in (await one.done("/alerts/1/acknowledge"))[0]
        assert f"maintenance 1 of {JOB} is planned" in (await one.done(f"/jobs/{JOB}/maintenance", **{"for": "2h"}))[0]
        assert "maintenance 1" in (await one.done("/maintenance/1/end"))[0]
        for kind in ("resume", "acknowledge", "maintenance_add", "maintenance_end"):
            assert await one.trail(kind) == IN_ITS_NAME, kind


async def test_accounts_are_run_again_by_name(database_url: str) -> None:
    async with program(database_url) as one:
        path = f"/occurrences/{one.here.occurrence}/rerun"
        async with session_on(database_url) as session:
            running_id = await session.fetchval(
                """update matins.ledger l set state = 'succeeded', finished_at = clock_timestamp()
                     from matins.occurrence o where o.id = l.occurrence_id and o.state = 'running' returning o.id"""
            )
            await close(session, running_id, by="test")
            failed = await session.fetchval(
                """select array_agg(l.account order by l.account) from matins.ledger l
                     join matins.occurrence o on o.id = l.occurrence_id
                    where o.state = 'partial' and l.state = 'failed'"""
            )
        chosen = [account for account in failed if not {"\n", "\r"} & set(account)][:2]
        asked = await one.order(path, {"reason": WHY, "which": "chosen", "account": chosen, "dry_run": True})
        assert json.loads(asked.text)["done"] is False
        assert await one.trail("rerun") == []
        (said,) = await one.done(path, which="chosen", account=chosen)
        assert "runs 2 accounts again, in generation 2" in said
        assert await one.trail("rerun") == IN_ITS_NAME
        (ended,) = await one.done(f"/occurrences/{one.here.occurrence}/cancel")
        assert "ends; what runs settles first" in ended


async def test_a_dry_run_says_what_would_be_done(database_url: str) -> None:
    async with program(database_url) as one:
        at = Identity(JOB, (await present(database_url))).scheduled_at
        range_ = {"from": f"{at.replace(year=at.year - 1):%Y-%m-%dT%H:%MZ}", "until": f"{at:%Y-%m-%dT%H:%MZ}"}
        before = await one.here.written()
        answer = await one.order(
            "/jobs/job-1/backfill", {"reason": WHY, **range_, "mode": "all", "max_active": 1, "dry_run": True}
        )
        found = json.loads(answer.text)
        assert (answer.status, found["done"]) == (200, False), answer.text
        assert found["headings"] == ["Instant", "What is done", "Why"]
        assert len(found["rows"]) > 10
        assert {len(row) for row in found["rows"]} == {3}
        assert await one.here.written() == before
        retired = await one.order(f"/jobs/{JOB}/retire", {"reason": WHY, "dry_run": True})
        assert f"Retire {JOB}?" in json.loads(retired.text)["told"][0]
        assert await one.here.written() == before


async def present(database_url: str) -> Any:
    async with session_on(database_url) as session:
        return await session.fetchval("select date_trunc('minute', now()) - interval '1 minute'")


WRONG: Final = [
    ({}, 400, "reason is missing"),
    ({"reason": ""}, 400, "reason: valid is a text of 1 to 500 characters"),
    ({"reason": "x" * 501}, 400, "reason: valid is a text of 1 to 500 characters"),
    ({"reason": "a\0b"}, 400, "reason: valid is a text"),
    ({"reason": 7}, 400, "reason: valid is a text"),
    ({"reason": "  "}, 422, "reason: say in 1 to 500 characters why; it is kept for good"),
    ({"reason": WHY, "why": "x"}, 400, "'why' is unknown; valid are reason, what, at, since, until"),
    ({"reason": WHY, "sure": "yes"}, 400, "'sure' is unknown"),
    ({"reason": WHY, "what": "everything"}, 400, "what: 'everything' is unknown; valid are due, planned, ad-hoc"),
    ({"reason": WHY, "what": None}, 400, "what: valid is a text"),
    ({"reason": WHY, "what": "planned", "at": "yesterday"}, 422, "at: 'yesterday' is not an instant"),
    (
        {"reason": WHY, "what": "planned", "at": "0001-01-01T00:00+14:00"},
        422,
        "at: '0001-01-01T00:00+14:00' lies outside",
    ),
    ({"reason": WHY, "what": "due", "at": "2026-01-01T00:00Z"}, 422, "at: goes with"),
    ({"reason": WHY, "what": "planned", "at": "2026-01-01T00:07Z"}, 422, "is not on the plan"),
    ([], 400, "the body is a JSON object"),
    (b"", 400, "the body is a JSON object"),
    (b"{", 400, "the body is a JSON object"),
    (b'{"reason": "\xff"}', 400, "the body is a JSON object"),
    (b"[" * 60_000, 400, "the body is a JSON object"),
]


async def test_what_cannot_be_done_says_where_and_what_is_valid(database_url: str) -> None:
    async with program(database_url) as one:
        before = await one.here.written()
        for body, status, detail in WRONG:
            found = told(await one.order("/jobs/job-1/run", body))
            assert found[0] == status, (body, found)
            assert detail in found[1], (body, found)
        for path, fields, detail in (
            ("/jobs/job-1/backfill", {"from": "2026-01-01T00:00Z"}, "until is missing"),
            ("/jobs/job-1/backfill", {**BODIES["backfill"], "max_active": 0}, "max_active: 0 is none"),
            ("/jobs/job-1/backfill", {**BODIES["backfill"], "max_active": True}, "max_active: valid is a whole number"),
            ("/jobs/job-1/backfill", {**BODIES["backfill"], "reverse": "yes"}, "reverse: valid is true or false"),
            (f"/jobs/{JOB}/retire", {"dry_run": 1}, "dry_run: valid is true or false"),
            (f"/occurrences/{one.here.occurrence}/rerun", {"account": ["a\nb"]}, "account: valid is a list"),
            (f"/occurrences/{one.here.occurrence}/rerun", {"account": ["a"] * 1001}, "account: valid is a list"),
            ("/jobs/job-1/run?what=ad-hoc", {}, "'what' is unknown; nothing is asked here"),
        ):
            found = await one.refused(path, **fields)
            assert (found[0], detail in found[1]) == (400, True), (path, fields, found)
        for path, fields, status, detail in (
            ("/jobs/invoice-runn/pause", {}, 422, "did you mean"),
            ("/jobs/%00/pause", {}, 404, "there is nothing of this name"),
            ("/alerts/99/acknowledge", {}, 422, "there is no alert 99"),
            ("/alerts/2/silence", {}, 422, "say when it ends: with for, as 8h, or with until"),
            ("/alerts/2/silence", {"for": "9d"}, 422, "7 days at most"),
            ("/maintenance/9/end", {}, 422, "there is no maintenance 9"),
            ("/backfills/x/cancel", {}, 422, "is no number of one"),
        ):
            found = await one.refused(path, **fields)
            assert (found[0], detail in found[1]) == (status, True), (path, found)
        assert await one.here.written() == before


async def test_what_people_write_stays_what_it_is(database_url: str) -> None:
    async with program(database_url) as one:
        for text in HOSTILE[:3]:
            await one.done(f"/jobs/{JOB}/pause", reason=text)
            await one.done(f"/jobs/{JOB}/resume", reason=text)
        assert [why for _, _, why in await one.trail("pause")] == list(HOSTILE[:3])


async def by_nobody(one: Program, path: str, body: Any) -> Answer:
    return await Program(one.here, {}).order(path, body, Origin=ORIGIN, Sec_Fetch_Site="same-origin")


def bearing(token: str) -> Callable[[Program, str, Any], Any]:
    async def send(one: Program, path: str, body: Any) -> Answer:
        return await Program(one.here, {"Authorization": f"Bearer {token}"}).order(path, body)

    return send


def sent_with(**headers: str | None) -> Callable[[Program, str, Any], Any]:
    async def send(one: Program, path: str, body: Any) -> Answer:
        return await one.order(path, body, **headers)

    return send


async def too_large(one: Program, path: str, body: Any) -> Answer:
    return await one.order(path, {**body, "reason": "x" * 65_536})


def by_ann(word: str = "ann", **headers: str | None) -> Callable[[Program, str, Any], Any]:
    """Have somebody who is signed in send it, with the word of a session, or without one."""

    async def send(one: Program, path: str, body: Any) -> Answer:
        words = {"ann": one.here.ann, "ben": one.here.ben}
        given = await words[word].word("/alerts") if word in words else word or None
        return await ordered_by(one.here.ann, path, body, X_CSRF_Token=given, **headers)

    return send


async def by_ben(one: Program, path: str, body: Any) -> Answer:
    return await ordered_by(one.here.ben, path, body, X_CSRF_Token=await one.here.ben.word("/alerts"))


async def ordered_by(visitor: Visitor, path: str, body: Any, **headers: str | None) -> Answer:
    return await visitor.post(
        f"/api/v1{path}", json.dumps(body).encode(), **{"Content_Type": "application/json", **headers}
    )


async def in_a_former_session(one: Program, path: str, body: Any) -> Answer:
    word, former = await one.here.ann.word("/alerts"), Visitor(one.here.console, cookies=dict(one.here.ann.cookies))
    await one.here.ann.sign_in()
    return await ordered_by(former, path, body, X_CSRF_Token=word)


REFUSED: Final[dict[str, tuple[Callable[[Program, str, Any], Any], int]]] = {
    "by nobody": (by_nobody, 401),
    "by a program that looks": (bearing(READ), 403),
    "by a program that nobody knows": (bearing("n" * 43), 401),
    "as a form": (sent_with(Content_Type="application/x-www-form-urlencoded"), 415),
    "as plain text": (sent_with(Content_Type="text/plain"), 415),
    "as nothing": (sent_with(Content_Type=None), 415),
    "too large": (too_large, 413),
    "by a program, from another site": (sent_with(Origin="https://evil.example.com"), 403),
    "to another name": (sent_with(Host="127.0.0.1"), 421),
    "by somebody who looks": (by_ben, 403),
    "without a word": (by_ann(""), 403),
    "with a word of nobody's": (by_ann("x" * 86), 403),
    "with another session's word": (by_ann("ben"), 403),
    "from another origin": (by_ann(Origin="https://evil.example.com"), 403),
    "from another site": (by_ann(Sec_Fetch_Site="cross-site"), 403),
    "from nowhere": (by_ann(Origin=None, Sec_Fetch_Site=None), 403),
    "in a former session": (in_a_former_session, 401),
}


def body_for(act: Act) -> dict[str, Any]:
    return example_body(act) | BODIES.get(act.name, {})


@pytest.mark.parametrize("how", REFUSED)
async def test_no_act_is_done(database_url: str, how: str) -> None:
    send, status = REFUSED[how]
    async with program(database_url) as one:
        before = await one.here.written()
        for act in ACTS:
            found = told(await send(one, one.here.path(act), body_for(act)))
            assert found[0] == status, (act.name, found)
            assert await one.here.written() == before, act.name


async def test_what_is_refused_above_would_be_done(database_url: str) -> None:
    async with program(database_url) as one:
        before, done = await one.here.written(), 0
        for act in ACTS:
            answer = await one.order(one.here.path(act), body_for(act))
            assert answer.status in {200, 409, 422}, (act.name, answer.text)
            done += answer.status == 200
        assert done > len(ACTS) / 2
        assert (await one.here.written())[0] >= before[0] + done


async def test_somebody_who_is_signed_in_acts_with_the_word_that_they_are_given(database_url: str) -> None:
    async with scene(database_url) as here:
        person = json.loads((await here.ann.get("/api/v1/person")).text)
        assert person == {"name": "ann@example.com", "role": "operate", "means": "oidc", "csrf": person["csrf"]}
        answer = await ordered_by(here.ann, f"/jobs/{JOB}/pause", {"reason": WHY}, X_CSRF_Token=person["csrf"])
        assert answer.status == 200, answer.text
        async with session_on(database_url) as session:
            row: Any = await session.fetchrow("select actor, reason from matins.audit where kind = 'pause'")
        assert tuple(row) == ("ann@example.com", WHY)
        looks = json.loads((await here.ben.get("/api/v1/person")).text)
        assert (looks["name"], looks["role"]) == ("ben@example.com", "read")
        program_ = Visitor(here.console, {"Authorization": f"Bearer {READ}"})
        told_of = json.loads((await program_.get("/api/v1/person")).text)
        assert told_of == {"name": "token:read-it", "role": "read", "means": "token", "csrf": ""}
