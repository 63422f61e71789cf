"""Who may not act, does not: every act, refused in every way in which somebody could send it who may not."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import pytest

from tests.console.night import JOB, make_night
from tests.console.serving import Answer, Served, serving
from tests.console.visitor import Visitor, access_by
from tests.support.ledger import session_on
from tests.support.openid import OpenIdProvider, running_provider
from trigger.console.acting import ACTS
from trigger.console.acts import Act
from trigger.console.forms import new_mark

ANN = {"email": "ann@example.com", "email_verified": True, "groups": ["operators"]}
BEN = {"email": "ben@example.com", "email_verified": True, "groups": ["watchers"]}
READ, OPERATE = "r" * 43, "o" * 43
TOKENS = "".join(
    f'[tokens.{role}-it]\nsha256 = "{sha256(token.encode()).hexdigest()}"\nrole = "{role}"\n'
    for role, token in (("read", READ), ("operate", OPERATE))
)
# What each act would be done with, so that nothing but who sends it is in its way.
FORMS: Final[dict[str, dict[str, str]]] = {
    "run": {"what": "ad-hoc"},
    "backfill": {"from": "2026-01-01T00:00Z", "until": "2026-01-02T00:00Z"},
    "maintenance": {"for": "1h"},
    "silence": {"for": "1h"},
}
WRITTEN = """
select (select count(*) from matins.audit where kind not like 'signed_%'), (select count(*) from matins.backfill),
       (select count(*) from matins.maintenance), (select md5(string_agg(j::text, '' order by name)) from matins.job j),
       (select md5(string_agg(o::text, '' order by id)) from matins.occurrence o),
       (select md5(string_agg(a::text, '' order by id)) from matins.alert a)"""


@dataclass
class Scene:
    """A console at night, with Ann who operates, Ben who looks, and an act that one of them wants done."""

    console: Served
    provider: OpenIdProvider
    ann: Visitor
    ben: Visitor
    occurrence: str
    database_url: str

    def path(self, act: Act) -> str:
        subjects = {"job": JOB, "occurrence": self.occurrence, "alert": "1", "backfill": "1", "maintenance": "1"}
        name = act.path.partition("{")[2].partition("}")[0]
        return act.path_for(subjects[name]) if name else act.path

    async def form(self, act: Act, **changes: str) -> dict[str, str]:
        usual = {"reason": "asked for", "sure": "yes", "form": new_mark(), "back": "/"}
        return usual | FORMS.get(act.name, {}) | {"csrf": await self.ann.word("/alerts")} | changes

    async def written(self) -> list[Any]:
        async with session_on(self.database_url) as session:
            row: Any = await session.fetchrow(WRITTEN)
        return list(row)


@asynccontextmanager
async def scene(database_url: str) -> AsyncIterator[Scene]:
    async with session_on(database_url) as session:
        occurrence = await make_night(session)
    with running_provider(**ANN) as provider:
        async with serving(database_url, console_access=access_by(provider, more=TOKENS)) as console:
            ann, ben = Visitor(console), Visitor(console)
            await ann.sign_in()
            provider.person = BEN
            await ben.sign_in()
            provider.person = ANN
            yield Scene(console, provider, ann, ben, occurrence, database_url)


async def nobody(here: Scene, act: Act) -> Answer:
    return await Visitor(here.console).post(here.path(act), await here.form(act))


async def somebody_who_looks(here: Scene, act: Act) -> Answer:
    return await here.ben.post(here.path(act), await here.form(act, csrf=await here.ben.word("/alerts")))


async def no_word(here: Scene, act: Act) -> Answer:
    return await here.ann.post(here.path(act), {**await here.form(act), "csrf": ""})


async def another_session_s_word(here: Scene, act: Act) -> Answer:
    return await here.ann.post(here.path(act), await here.form(act, csrf=await here.ben.word("/alerts")))


async def a_former_session_s_word(here: Scene, act: Act) -> Answer:
    word = await here.ann.word("/alerts")
    await here.ann.sign_in()
    return await here.ann.post(here.path(act), await here.form(act, csrf=word))


async def a_former_session(here: Scene, act: Act) -> Answer:
    form, former = await here.form(act), Visitor(here.console, cookies=dict(here.ann.cookies))
    await here.ann.sign_in()
    return await former.post(here.path(act), form)


async def a_session_that_is_over(here: Scene, act: Act) -> Answer:
    form = await here.form(act)
    async with session_on(here.database_url) as session:
        await session.execute("update matins.console_session set created_at = created_at - interval '12 hours'")
    answer = await here.ann.post(here.path(act), form)
    async with session_on(here.database_url) as session:
        await session.execute("update matins.console_session set created_at = created_at + interval '12 hours'")
    return answer


def from_elsewhere(**headers: str | None) -> Callable[[Scene, Act], Any]:
    async def send(here: Scene, act: Act) -> Answer:
        return await here.ann.post(here.path(act), await here.form(act), **headers)

    return send


async def by_going_there(here: Scene, act: Act) -> Answer:
    query = "&".join(f"{name}={value}" for name, value in (await here.form(act)).items())
    return await here.ann.get(f"{here.path(act)}?{query}")


def of_another_kind(kind: str) -> Callable[[Scene, Act], Any]:
    async def send(here: Scene, act: Act) -> Answer:
        body: Any = "&".join(f"{name}={value}" for name, value in (await here.form(act)).items()).encode()
        return await here.ann.post(here.path(act), body, Content_Type=kind)

    return send


async def too_large(here: Scene, act: Act) -> Answer:
    return await here.ann.post(here.path(act), await here.form(act, more="x" * 65_536))


def with_token(token: str) -> Callable[[Scene, Act], Any]:
    async def send(here: Scene, act: Act) -> Answer:
        program = Visitor(here.console, {"Authorization": f"Bearer {token}"}, dict(here.ann.cookies))
        return await program.post(here.path(act), await here.form(act), Origin=None, Sec_Fetch_Site=None)

    return send


REFUSED: Final[dict[str, tuple[Callable[[Scene, Act], Any], int]]] = {
    "by nobody": (nobody, 401),
    "by somebody who looks": (somebody_who_looks, 403),
    "without a word": (no_word, 403),
    "with another session's word": (another_session_s_word, 403),
    "with a former session's word": (a_former_session_s_word, 403),
    "in a former session": (a_former_session, 401),
    "in a session that is over": (a_session_that_is_over, 401),
    "from another origin": (from_elsewhere(Origin="https://evil.example.com"), 403),
    "from no origin": (from_elsewhere(Origin="null"), 403),
    "from another site": (from_elsewhere(Sec_Fetch_Site="cross-site"), 403),
    "from the same site": (from_elsewhere(Sec_Fetch_Site="same-site"), 403),
    "from nowhere": (from_elsewhere(Origin=None, Sec_Fetch_Site=None), 403),
    "to another name": (from_elsewhere(Host="127.0.0.1"), 421),
    "by going there": (by_going_there, 405),
    "as JSON": (of_another_kind("application/json"), 415),
    "as plain text": (of_another_kind("text/plain"), 415),
    "in parts": (of_another_kind("multipart/form-data; boundary=x"), 415),
    "too large": (too_large, 413),
    "by a program that looks": (with_token(READ), 403),
    "by a program that operates, as a form": (with_token(OPERATE), 403),
    "by a program that nobody knows": (with_token("n" * 43), 401),
}


@pytest.mark.parametrize("how", REFUSED)
async def test_no_act_is_done(database_url: str, how: str) -> None:
    send, status = REFUSED[how]
    async with scene(database_url) as here:
        before = await here.written()
        for act in ACTS:
            answer = await send(here, act)
            assert answer.status == status, (act.name, answer.text)
            assert await here.written() == before, act.name


async def test_what_is_refused_above_would_be_done_or_answered(database_url: str) -> None:
    async with scene(database_url) as here:
        before, done = await here.written(), 0
        for act in ACTS:
            answer = await here.ann.post(here.path(act), await here.form(act))
            assert answer.status in {303, 409, 422}, (act.name, answer.text)
            done += answer.status == 303
        assert done > len(ACTS) / 2
        assert (await here.written())[0] >= before[0] + done


async def test_where_nobody_signs_in_nobody_acts_and_nothing_is_offered(database_url: str) -> None:
    async with session_on(database_url) as session:
        occurrence = await make_night(session)
    async with serving(database_url) as console:
        for act in ACTS:
            path = act.path.format(job=JOB, occurrence=occurrence, alert=1, backfill=1, maintenance=1)
            for headers in (
                {},
                {"Authorization": f"Bearer {OPERATE}"},
                {"Origin": f"http://127.0.0.1:{console.console.port}"},
            ):
                answer = await console.post(path, data={"reason": "x", "sure": "yes"}, headers=headers)
                assert (answer.status, "only shows" in answer.text) == (403, True)
        for path in ("/", f"/jobs/{JOB}", "/alerts/1"):
            assert 'method="post"' not in (await console.get(path)).text


async def test_who_looks_is_offered_nothing_but_the_way_out(database_url: str) -> None:
    async with scene(database_url) as here:
        for path in ("/", f"/jobs/{JOB}", "/alerts/1"):
            page = (await here.ben.get(path)).text
            assert page.count('method="post"') == 1
            assert 'action="/sign-out"' in page
            assert (await here.ann.get(path)).text.count('method="post"') >= 1
        assert 'action="/alerts/1/acknowledge"' in (await here.ann.get("/alerts/1")).text
