"""Check-ins over real HTTP: who may report what, what they are told, and that a job that runs here takes none."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from schemas.occurrence import format_instant
from shared.job import Cron, RunsElsewhere, hours, minutes
from tests.integration.operate.night import nightly
from tests.integration.trigger.test_api import Place, opened
from tests.support.outside import Answer, described, new_key, signed

pytestmark = pytest.mark.timeout(120)

KEY, FIRING_KEY = new_key(), new_key()
REPORT = RunsElsewhere(
    "report", Cron("0 2 * * *"), start_within=minutes(10), finish_within=hours(1), heard_within=hours(20)
)
CALLERS = described("old-host", ["report", "invoice-run", "missing"], KEY, may="check_ins") + described(
    "cron", ["report", "invoice-run"], FIRING_KEY
)
AtPlace = Callable[..., AbstractAsyncContextManager[Place]]


@pytest.fixture
def place(tmp_path: Path, database_url: str, broker_url: str, prefix: str) -> AtPlace:
    """Give how to open an endpoint; tests enter it themselves, since it holds a task group."""
    return lambda job=REPORT: opened(CALLERS, tmp_path, database_url, broker_url, prefix, job=job)


async def checked_in(
    here: Place, event: str, *, key: str = KEY, job: str = "report", identity: str = "", **more: Any
) -> Answer:
    """Send a check-in."""
    body = json.dumps({"event": event} | more).encode()
    return await here.post(signed(key, job, body, identity=identity, path=f"/v1/check-ins/{job}"))


async def state_of(here: Place) -> str:
    return str(await here.session.fetchval("select state from matins.occurrence"))


async def test_a_run_reports_its_start_and_its_end(place: AtPlace) -> None:
    async with place() as here:
        occurrence = f"report:{format_instant(here.due)}"
        first = await checked_in(here, "start", run="host-1/4711")
        assert first.status == 202, first.body
        told = {"occurrence": occurrence, "id": first.json["id"], "state": "claimed", "deduplicated": False}
        assert first.json == told
        again = await checked_in(here, "start", run="host-1/4711")
        assert (again.status, again.json) == (200, told | {"deduplicated": True})
        ended = await checked_in(here, "success", run="host-1/4711", scheduled_at=here.due.isoformat())
        assert (ended.status, ended.json["state"]) == (202, "succeeded")
        row: Any = await here.session.fetchrow("select fired_by, fire_reason, run_id from matins.occurrence")
        assert (row["fired_by"], row["run_id"]) == ("old-host", "host-1/4711")
        assert row["fire_reason"].startswith("checked in, key ")
        trail = await here.session.fetch("select actor, actor_kind from matins.audit where kind = 'check_in'")
        assert [tuple(one) for one in trail] == [("old-host", "caller")] * 2


async def test_a_failure_comes_with_its_reason(place: AtPlace) -> None:
    async with place() as here:
        assert (await checked_in(here, "fail", message="exit code 3")).status == 202
        assert (
            await here.session.fetchval("select reason from matins.occurrence") == "reported by old-host: exit code 3"
        )


async def test_a_call_that_comes_twice_is_answered_with_the_same(place: AtPlace) -> None:
    async with place() as here:
        first = await checked_in(here, "success", identity="msg_1")
        again = await checked_in(here, "success", identity="msg_1")
        assert (first.status, again.status) == (202, 200)
        assert again.json == first.json | {"deduplicated": True}
        other = await checked_in(here, "fail", identity="msg_1")
        assert (other.status, other.json["detail"]) == (422, "this webhook-id was used for another call")


async def test_who_may_fire_may_not_report_and_the_other_way_round(place: AtPlace) -> None:
    async with place() as here:
        assert (await checked_in(here, "success", key=FIRING_KEY)).status == 403
        assert (await here.post(signed(KEY, "report"))).status == 403
        refused = await here.post(signed(FIRING_KEY, "report"))
        assert (refused.status, refused.json["detail"]) == (
            422,
            "the job runs elsewhere: it checks in, at /v1/check-ins/report",
        )
        assert (await checked_in(here, "success", key=new_key())).status == 401
        assert (await checked_in(here, "success", job="missing")).status == 404
        assert await state_of(here) == "expected"
        assert await here.written() == (0, 0, 0, 0)


async def test_a_job_that_runs_here_does_not_check_in(place: AtPlace) -> None:
    async with place(nightly("invoice-run")) as here:
        refused = await checked_in(here, "success", job="invoice-run")
        assert (refused.status, refused.json["detail"]) == (422, "the job runs here: it does not check in")
        assert await here.written() == (0, 0, 0, 0)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"event": "done"},
        {"event": 1},
        {"event": "start", "run": ""},
        {"event": "start", "run": "a b"},
        {"event": "start", "run": "a\n"},
        {"event": "start", "run": "x" * 101},
        {"event": "start", "message": "no"},
        {"event": "success", "message": "no"},
        {"event": "fail", "message": None},
        {"event": "fail", "scheduled_at": "2026-08-25T02:00:00"},
        {"event": "fail", "scheduled_at": "yesterday"},
        {"event": "fail", "exit_code": 3},
    ],
)
async def test_a_body_that_cannot_be_read_is_told_what_can(place: AtPlace, body: dict[str, Any]) -> None:
    async with place() as here:
        refused = await here.post(signed(KEY, "report", json.dumps(body).encode(), path="/v1/check-ins/report"))
        assert (refused.status, refused.headers["content-type"]) == (400, "application/problem+json")
        assert refused.json["detail"].startswith('the body is JSON as {"event": "start"}: start, success or fail')
        assert await here.written() == (0, 0, 0, 0)


async def test_an_empty_body_reports_nothing(place: AtPlace) -> None:
    async with place() as here:
        empty = await here.post(signed(KEY, "report", path="/v1/check-ins/report"))
        assert empty.status == 400


async def test_the_body_can_bind_the_signature_to_the_job(place: AtPlace) -> None:
    async with place() as here:
        body = json.dumps({"event": "success", "job": "other"}).encode()
        refused = await here.post(signed(KEY, "report", body, path="/v1/check-ins/report"))
        assert (refused.status, refused.json["detail"]) == (422, "the body names another job")


async def test_what_was_decided_otherwise_is_told_and_not_to_be_tried_again(place: AtPlace) -> None:
    async with place() as here:
        await checked_in(here, "success", run="a")
        for event in ("fail", "start"):
            refused = await checked_in(here, event, run="b", scheduled_at=here.due.isoformat())
            assert refused.status == 422
            assert refused.json["detail"] == f"report:{format_instant(here.due)} is over: it was succeeded"


def instant(here: Place, later: timedelta) -> str:
    at: datetime = here.due + later
    return at.isoformat()


async def test_an_instant_that_is_not_on_the_schedule_and_a_job_that_is_paused(place: AtPlace) -> None:
    async with place() as here:
        off = await checked_in(here, "success", scheduled_at=instant(here, timedelta(seconds=-1)))
        assert (off.status, off.json["detail"]) == (422, "the instant is not on the job's schedule")
        await here.session.execute("update matins.job set paused_at = clock_timestamp()")
        paused = await checked_in(here, "start")
        assert (paused.status, paused.json["title"]) == (409, "It cannot run now")
        await here.session.execute("update matins.job set paused_at = null, retired_at = clock_timestamp()")
        assert (await checked_in(here, "start")).status == 404
