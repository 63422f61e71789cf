"""What somebody who operates does on a page: it is done by the same functions as at the command line, in their name."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from schemas.occurrence import Identity, format_instant
from shared.close import close
from shared.postgres import Session
from tests.console.night import HOSTILE, JOB, make_night
from tests.console.reading import shown
from tests.console.serving import Answer, serving
from tests.console.visitor import Visitor, access_by
from tests.support.ledger import session_on
from tests.support.openid import running_provider
from tests.support.proxy import Proxy
from trigger.console.forms import new_mark

ANN: Final = {"email": "ann@example.com", "email_verified": True, "groups": ["operators"]}
WHY: Final = "the price list is mended"


@dataclass
class Operator:
    """Ann at a console at night, and a session to look with; `occurrence` has failed accounts."""

    ann: Visitor
    session: Session
    occurrence: str

    async def order(self, path: str, **fields: Any) -> Answer:
        """Send a form."""
        usual = {"csrf": await self.ann.word("/alerts"), "form": new_mark(), "back": "/alerts", "reason": WHY}
        return await self.ann.post(path, usual | {name.replace("_", "-"): value for name, value in fields.items()})

    async def done(self, path: str, **fields: Any) -> str:
        """Send a form that is acted on; give what is told of it, on the page to which it leads."""
        answer = await self.order(path, **fields)
        assert answer.status == 303, answer.text
        where = answer.headers["location"]
        assert re.fullmatch(r"/alerts\?done=[0-9a-f]{32}", where)
        page = shown((await self.ann.get(where)).text)
        (banner,) = page.node.query(".banner.good")
        return " ".join(str(banner.to_text(separator=" ")).split())

    async def refused(self, status: int, path: str, **fields: Any) -> str:
        """Send a form that is not acted on; give what the page says."""
        answer = await self.order(path, **fields)
        assert answer.status == status, answer.text
        return shown(answer.text).text

    async def trail(self, kind: str) -> list[tuple[Any, ...]]:
        """Give who did something of a kind, and why."""
        rows = await self.session.fetch(
            "select actor, actor_kind, reason, instance from matins.audit where kind = $1 and actor like 'ann@%'", kind
        )
        return [tuple(row) for row in rows]


IN_HER_NAME: Final = [("ann@example.com", "operator", WHY, "c0ffee00")]


@asynccontextmanager
async def operator(database_url: str, through: str = "") -> AsyncIterator[Operator]:
    async with session_on(database_url) as session:
        occurrence = await make_night(session)
        with running_provider(**ANN) as provider:
            async with serving(through or database_url, console_access=access_by(provider)) as console:
                ann = Visitor(console)
                await ann.sign_in()
                yield Operator(ann, session, occurrence)


async def running(here: Operator) -> str:
    """Give the name of the occurrence that runs."""
    scheduled_at = await here.session.fetchval(
        "select scheduled_at from matins.occurrence where job = $1 and state = 'running'", JOB
    )
    return str(Identity(JOB, scheduled_at))


async def test_a_job_is_paused_and_resumed(database_url: str) -> None:
    async with operator(database_url) as here:
        told = await here.done(f"/jobs/{JOB}/pause", meanwhile="hold")
        assert told.startswith(f"{JOB} is paused: what falls due waits")
        assert await here.trail("pause") == IN_HER_NAME
        page = await here.ann.get(f"/jobs/{JOB}")
        assert f'action="/jobs/{JOB}/resume"' in page.text
        assert f'action="/jobs/{JOB}/pause"' not in page.text
        assert "is paused already" in await here.refused(422, f"/jobs/{JOB}/pause", meanwhile="hold")
        assert "is resumed" in await here.done(f"/jobs/{JOB}/resume")
        assert await here.trail("resume") == IN_HER_NAME
        assert "is not paused" in await here.refused(422, f"/jobs/{JOB}/resume")
        assert "did you mean" in await here.refused(422, "/jobs/invoice-runn/pause")
        assert "nothing of this name" in await here.refused(422, "/jobs/a%00b/pause")


async def test_a_job_is_retired_once_somebody_is_sure_and_brought_back(database_url: str) -> None:
    async with operator(database_url) as here:
        asked = await here.order(f"/jobs/{JOB}/retire")
        assert (asked.status, f"Retire {JOB}?" in asked.text) == (200, True)
        assert await here.trail("retire") == []
        form = dict(
            re.findall(r'<input type="hidden" name="([\w-]+)" value="([^"]*)">', asked.text.partition("<main")[2])
        )
        assert (form["reason"], form["sure"]) == (WHY, "yes")
        assert (await here.ann.post(f"/jobs/{JOB}/retire", form)).status == 303
        assert await here.trail("retire") == IN_HER_NAME
        page = (await here.ann.get(f"/jobs/{JOB}")).text
        assert re.findall(r'action="/jobs/invoice-run/([\w-]+)"', page) == ["unretire"]
        assert "no longer retired" in await here.done(f"/jobs/{JOB}/unretire")


async def test_a_job_is_run(database_url: str) -> None:
    async with operator(database_url) as here:
        told = await here.done("/jobs/job-1/run", what="ad-hoc", since="2026-01-01T00:00Z", until="2026-01-02T00:00Z")
        assert re.fullmatch(r"job-1\+ad-hoc-\w+:\S+ is claimed; any live trigger goes on with it", told)
        assert await here.trail("claim") == IN_HER_NAME
        for fields, problem in (
            ({"what": "ad-hoc", "until": "2199-01-01T00:00Z"}, "is still to come"),
            ({"what": "ad-hoc", "since": "yesterday"}, "“Beside the schedule: its window begins”: 'yesterday' is not"),
            ({"what": "planned"}, "“Planned instant”: goes with"),
            ({"what": "due", "at": "2026-01-01T00:00Z"}, "“Planned instant”: goes with"),
            ({"what": "due", "since": "2026-01-01T00:00Z"}, "a planned occurrence has its own window"),
            ({"what": "planned", "at": "2026-01-01T00:07Z"}, "is not on the plan"),
            ({"what": "everything"}, "valid are due, planned, ad-hoc"),
        ):
            assert problem in await here.refused(422, "/jobs/job-4/run", **fields), fields
        # Another has it: whoever asked is told who.
        held = await here.session.fetchval(
            "select max(scheduled_at) from matins.occurrence where job = 'job-1' and state = 'succeeded'"
        )
        assert "succeeded: claimed at" in await here.refused(
            409, "/jobs/job-1/run", what="planned", at=format_instant(held)
        )


async def test_a_backfill_is_shown_first_and_then_ordered_and_cancelled(database_url: str) -> None:
    async with operator(database_url) as here:
        bounds: Any = await here.session.fetchrow(
            """select min(scheduled_at), max(scheduled_at)
                 from matins.occurrence where job = 'job-2' and state in ('succeeded', 'missed')"""
        )
        since, until = (format_instant(one) for one in bounds)
        asked = await here.order("/jobs/job-2/backfill", **{"from": since, "until": until}, mode="missing")
        page = shown(asked.text)
        assert (asked.status, "Run 1 of the " in page.text) == (200, True)
        rows = page.table("preview")
        assert [row[1:] for row in rows if row[1] != "leave"] == [["run", "missed: later than catch_up_within"]]
        assert await here.session.fetchval("select count(*) from matins.backfill") == 0
        told = await here.done("/jobs/job-2/backfill", **{"from": since, "until": until}, mode="missing", sure="yes")
        assert told.startswith("backfill 1 of job-2: 1 of ")
        assert await here.trail("backfill") == IN_HER_NAME
        ordered = (await here.ann.get("/jobs/job-2")).text
        assert "Backfill 1" in shown(ordered).text
        assert f"by ann@example.com: {WHY}" in shown(ordered).text
        assert 'action="/backfills/1/cancel"' in ordered
        assert "is cancelled" in await here.done("/backfills/1/cancel", sure="yes")
        assert 'action="/backfills/1/cancel"' not in (await here.ann.get("/jobs/job-2")).text
        assert await here.trail("backfill_cancelled") == IN_HER_NAME
        for fields, problem in (
            ({}, "“From” and “Until”: both are needed"),
            ({"from": since, "until": "2199-01-01T00:00Z"}, "is still to come"),
            ({"from": since, "until": until, "max_active": "0"}, "“At once at most”: valid is a whole number"),
            ({"from": since, "until": until, "mode": "failed"}, "nothing of job-2 is there to run"),
        ):
            assert problem in await here.refused(422, "/jobs/job-2/backfill", sure="yes", **fields), fields
        assert "there is no backfill 7" in await here.refused(422, "/backfills/7/cancel", sure="yes")
        assert "is no number" in await here.refused(422, "/backfills/x/cancel", sure="yes")


async def test_accounts_run_again(database_url: str) -> None:
    async with operator(database_url) as here:
        running_id = await here.session.fetchval(
            """update matins.ledger l set state = 'succeeded', finished_at = clock_timestamp() from matins.occurrence o
                where o.id = l.occurrence_id and o.state = 'running' and o.job = $1 returning o.id""",
            JOB,
        )
        await close(here.session, running_id, by="test")
        path = f"/occurrences/{here.occurrence}/rerun"
        failed = await here.session.fetch(
            """select l.account from matins.ledger l join matins.occurrence o on o.id = l.occurrence_id
                where o.job = $1 and l.state in ('failed', 'dead') and o.state = 'partial' order by l.position""",
            JOB,
        )
        names = [row["account"] for row in failed]
        assert "has no account: 'nobody'" in await here.refused(
            422, path, which="chosen", account=f"{names[0]}\r\nnobody"
        )
        assert "goes with “those below”" in await here.refused(422, path, which="chosen")
        assert "goes with “those below”" in await here.refused(422, path, which="failed", account=names[0])
        asked = await here.order(path, which="chosen", account=names[:2], new_key="yes")
        assert (asked.status, "again with new keys?" in asked.text) == (200, True)
        where = f"/occurrences/{here.occurrence}/account?{urlencode({'id': names[0]})}"
        form = shown((await here.ann.get(where)).text).node.query("form.act")[0]
        assert form.query("textarea")[0].to_text(strip=False).strip("\n") == names[0]
        assert form.query('input[name="which"][checked]')[0].attrs["value"] == "chosen"
        assert form.query('input[name="back"]')[0].attrs["value"] == where
        told = await here.done(path, which="chosen", account=f"{names[0]}\r\n\r\n{names[1]}")
        assert told == f"{here.occurrence} runs 2 accounts again, in generation 2"
        assert await here.trail("rerun") == IN_HER_NAME
        assert "runs already, in generation 2" in await here.refused(422, path, which="failed")


async def test_an_occurrence_is_cancelled_once_somebody_is_sure(database_url: str) -> None:
    async with operator(database_url) as here:
        name = await running(here)
        path = f"/occurrences/{name}/cancel"
        assert (await here.order(path)).status == 200
        assert await here.trail("cancel") == []
        assert await here.done(path, sure="yes") == f"{name} ends; what runs settles first"
        assert await here.trail("cancel") == IN_HER_NAME
        assert "is ending already" in await here.refused(422, path, sure="yes")
        assert "is not" in await here.refused(422, "/occurrences/nothing/cancel", sure="yes")


async def test_alerts_are_acknowledged_and_silenced(database_url: str) -> None:
    async with operator(database_url) as here:
        told = await here.done("/alerts/1/silence", **{"for": "2h"})
        assert "is silenced until" in told
        assert 'action="/alerts/1/unsilence"' in (await here.ann.get("/alerts/1")).text
        assert "is no longer silenced" in await here.done("/alerts/1/unsilence")
        assert "is acknowledged" in await here.done("/alerts/1/acknowledge")
        page = (await here.ann.get("/alerts/1")).text
        assert "acknowledged" in page
        assert 'class="act"' not in page
        for kind in ("silence", "unsilence", "acknowledge"):
            assert await here.trail(kind) == IN_HER_NAME
        for fields, problem in (
            ({}, "say when it ends: with “For”, as 8h, or with “Until”"),
            ({"for": "1h", "until": "2199-01-01T00:00Z"}, "not with both"),
            ({"for": "9d"}, "7 days at most"),
            ({"for": "long"}, "“For”: 'long' is no time"),
        ):
            assert problem in await here.refused(422, "/alerts/2/silence", **fields), fields
        assert "there is no alert" in await here.refused(422, "/alerts/99/acknowledge")


async def test_maintenance_is_planned_and_ended(database_url: str) -> None:
    async with operator(database_url) as here:
        assert f"maintenance 1 of {JOB} is planned" in await here.done(f"/jobs/{JOB}/maintenance", **{"for": "2h"})
        assert "maintenance 2 of all jobs is planned" in await here.done("/maintenance", **{"for": "30m"})
        assert len(await here.trail("maintenance_add")) == 2
        page = (await here.ann.get("/alerts?job=")).text
        offered = re.findall(r'action="(/maintenance[^"]*)"', page)
        assert offered == ["/maintenance", "/maintenance/1/end", "/maintenance/2/end"]
        assert 'action="/maintenance/1/end"' in (await here.ann.get(f"/jobs/{JOB}")).text
        assert "maintenance 2 of all jobs is over" in await here.done("/maintenance/2/end")
        assert await here.trail("maintenance_end") == IN_HER_NAME
        assert "“From”" in await here.refused(422, "/maintenance", since="2026-01-01T00:00Z", **{"for": "1h"})


@pytest.mark.parametrize("reason", ["", "   ", "x" * 501])
async def test_nothing_is_done_without_a_reason(database_url: str, reason: str) -> None:
    async with operator(database_url) as here:
        told = await here.refused(422, f"/jobs/{JOB}/pause", reason=reason, meanwhile="hold")
        assert "“Why”: say in 1 to 500 characters why; it is kept for good" in told
        assert await here.trail("pause") == []


async def test_what_was_written_stands_in_the_form_again_as_text(database_url: str) -> None:
    async with operator(database_url) as here:
        for text in HOSTILE[:6]:
            answer = await here.order("/jobs/job-1/run", what="planned", at=text, reason=text)
            assert answer.status == 422
            assert "<img" not in answer.text
            assert "<script>d" not in answer.text
            form = shown(answer.text).node.query("form.act")[0]
            given = {one.attrs["name"]: one.attrs.get("value") for one in form.query("input")}
            assert given["reason"] == text
            assert form.query('input[value="planned"]')[0].attrs.keys() >= {"checked"}


async def test_a_form_is_acted_on_once(database_url: str) -> None:
    async with operator(database_url) as here:
        mark = new_mark()
        assert (await here.order("/jobs/job-1/run", what="ad-hoc", form=mark)).status == 303
        assert "was sent before" in await here.refused(409, "/jobs/job-1/run", what="ad-hoc", form=mark)
        assert len(await here.trail("claim")) == 1
        for wrong in ("", "x", "<script>", mark.upper() + "0"):
            assert "has no mark" in await here.refused(422, "/jobs/job-1/run", what="ad-hoc", form=wrong)


async def test_what_is_told_is_told_to_who_did_it_alone_and_never_from_the_address(database_url: str) -> None:
    async with operator(database_url) as here:
        mark = new_mark()
        assert (await here.order(f"/jobs/{JOB}/pause", form=mark)).status == 303
        assert "is paused: what falls" in (await here.ann.get(f"/alerts?done={mark}")).text
        for other in (new_mark(), "anything", ""):
            page = (await here.ann.get(f"/alerts?done={other}")).text
            assert "banner good" not in page
            assert "anything" not in page
        ben = Visitor(here.ann.served)
        await ben.sign_in()
        assert "banner good" not in (await ben.get(f"/alerts?done={mark}")).text


@pytest.mark.parametrize(
    ("back", "to"),
    [
        ("https://evil.example.com", "/?"),
        ("//evil.example.com", "/?"),
        ("/alerts?show=all", "/alerts?show=all&"),
        ("", "/?"),
    ],
)
async def test_who_has_acted_stays_at_the_console(database_url: str, back: str, to: str) -> None:
    async with operator(database_url) as here:
        mark = new_mark()
        answer = await here.order(f"/jobs/{JOB}/pause", back=back, form=mark)
        assert (answer.status, answer.headers["location"]) == (303, f"{to}done={mark}")


async def test_an_act_that_the_database_cuts_off_is_told_as_such(database_url: str) -> None:
    async with Proxy(database_url) as wire, operator(database_url, wire.url) as here:
        word = await here.ann.word("/alerts")
        wire.refuse()
        wire.reset()
        form = {"csrf": word, "form": new_mark(), "back": "/alerts", "reason": WHY}
        answer = await here.ann.post(f"/jobs/{JOB}/pause", form)
        assert answer.status == 503
        assert await here.trail("pause") == []
