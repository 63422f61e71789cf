"""How the JSON refuses: the place and what is valid, the status, the headers; and who is not let in."""

import json
from typing import Any

from tests.console.night import JOB, make_night
from tests.console.serving import Answer, serving
from tests.console.test_letting_in import OLD, OTHER, TOKEN, by_proxy, by_token, sessions
from tests.console.visitor import ORIGIN, Visitor
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.proxy import Proxy
from trigger.console.guarding import HEADERS

REFUSED = [
    ("status?days=3", 400, "'days' is unknown; nothing is asked here"),
    ("occurrences?state=ended", 400, "state: 'ended' is unknown; valid are expected, claimed, running, succeeded"),
    ("occurrences?limit=0", 400, "limit: '0' is none; valid is a whole number from 1 to 1000"),
    ("occurrences?limit=1001", 400, "limit: '1001' is none"),
    ("occurrences?limit=1&limit=2", 400, "limit: it is given 2 times; at most 1 are read"),
    ("occurrences?since=yesterday", 400, "since: 'yesterday' is not an instant; write 2026-08-25T02:00Z"),
    ("occurrences?since=2026-08-25T02:00", 400, "since: '2026-08-25T02:00' names no zone"),
    ("occurrences?since=0001-01-01T00:00%2B14:00", 400, "lies outside the years 1 to 9999 in UTC"),
    ("occurrences?job=invoce-run", 404, "there is no job 'invoce-run'; did you mean invoice-run?"),
    ("occurrences?job=", 400, "job: valid is a text of 1 to 63 characters"),
    ("occurrences?job=%00", 400, "job: valid is a text of 1 to 63 characters"),
    ("occurrences?Job=invoice-run", 400, "'Job' is unknown; valid are job, state, since, limit"),
    ("occurrences/invoice-run", 404, "not an occurrence: 'invoice-run'; write it as JOB:2026-08-25T02:00Z (UTC)"),
    ("occurrences/invoice-run:2026-02-30T02:00Z", 404, "day is out of range for month"),
    ("occurrences/invoice-run:2001-01-01T00:00Z", 404, "is not on the plan; nearest: "),
    ("audit?occurrence=invoice-run", 400, "occurrence: not an occurrence: 'invoice-run'"),
    ("alerts?closed=yes", 400, "closed: 'yes' is unknown; valid are true and false"),
    ("alerts?kind=ended", 400, "kind: 'ended' is unknown; valid are not_claimed, not_finished"),
    ("alerts/99", 404, "there is no alert 99"),
    ("alerts/partial:%00", 404, "there is nothing of this name"),
    (f"jobs/{JOB}/preview?from=9999-12-31T23:59Z", 400, "from: lies more than 60 years from now"),
    (f"jobs/{JOB}/attempts?days=367", 400, "days: '367' is none; valid is a whole number from 1 to 366"),
    ("jobs/none", 404, "there is no job 'none'"),
    ("queues", 503, "the queues were not seen: MATINS_BROKER_URL is not set"),
    ("nowhere", 404, ""),
    ("", 404, ""),
]


def told(answer: Answer) -> tuple[int, str]:
    """Read a problem, and see that it is one."""
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    assert {name: answer.headers[name.lower()] for name in HEADERS} == HEADERS
    problem: dict[str, Any] = json.loads(answer.text)
    assert problem["type"] == "about:blank"
    assert problem["title"]
    assert problem["status"] == answer.status
    return answer.status, problem.get("detail", "")


async def test_what_cannot_be_answered_says_where_and_what_is_valid(database_url: str) -> None:
    async with session_on(database_url) as session:
        await make_night(session)
    async with serving(database_url) as console:
        for path, status, detail in REFUSED:
            found = told(await console.get(f"/api/v1/{path}"))
            assert found[0] == status, (path, found)
            assert detail in found[1], (path, found)


async def test_an_answer_beside_the_methods_that_there_are(database_url: str) -> None:
    bearing = {"Host": "console.example.com", "Authorization": f"Bearer {TOKEN}"}
    async with serving(database_url, console_access=by_token()) as console:
        head = await console.client.head("/api/v1/status", headers=bearing)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == "application/json"
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "QUERY"):
            raw = await console.client.request(method, "/api/v1/status", headers=bearing)
            assert raw.status_code == 405
            assert {one.strip() for one in raw.headers["allow"].split(",")} == {"GET", "HEAD"}
            assert "valid are" in json.loads(raw.text)["detail"]
    async with serving(database_url) as console:
        assert told(await console.post("/api/v1/status")) == (403, "This console only shows: nobody can sign in.")
        other = await console.get("/api/v1/status", headers={"Host": "attacker.example"})
        assert told(other) == (421, "This console answers under another name.")


async def test_where_people_sign_in_nobody_else_reads(database_url: str) -> None:
    async with serving(database_url, console_access=by_token()) as console:
        for token, status in ((TOKEN, 200), (OTHER, 200), (OLD, 401), ("e" * 43, 401), ("", 401)):
            bearing = {"Authorization": f"Bearer {token}"} if token else {}
            for path in ("status", "openapi.json", "jobs/none"):
                answer = await Visitor(console, bearing).get(f"/api/v1/{path}")
                assert answer.status == (404 if status == 200 and path == "jobs/none" else status)
                if status == 401:
                    assert told(answer)[0] == 401
                    assert answer.headers["www-authenticate"] == 'Bearer realm="/api/v1"'


async def test_a_program_behind_a_proxy_begins_no_session(database_url: str) -> None:
    async with serving(database_url, console_access=by_proxy()) as console:
        ann = Visitor(console, {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "operators"})
        assert (await ann.get("/api/v1/status")).status == 200
        assert await sessions(database_url) == []
        assert "set-cookie" not in (await ann.get("/api/v1/jobs")).headers
        ann.headers = {"X-Forwarded-User": "eve", "X-Forwarded-Groups": "staff"}
        assert told(await ann.get("/api/v1/status"))[0] == 403


async def test_a_session_of_a_page_reads_the_json(database_url: str) -> None:
    async with serving(database_url, console_access=by_proxy()) as console:
        ann = Visitor(console, {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "operators"})
        await ann.get("/")
        assert await sessions(database_url) == ["ann"]
        assert (await ann.get("/api/v1/status", Origin=ORIGIN)).status == 200
        assert await sessions(database_url) == ["ann"]


async def test_an_outage_is_a_503_that_says_when_to_come_again(database_url: str) -> None:
    async with Proxy(database_url) as proxy, serving(proxy.url) as console:
        assert (await console.get("/api/v1/jobs")).status == 200
        proxy.refuse()
        proxy.reset()
        kept = await console.get("/api/v1/jobs")
        assert (kept.status, int(kept.headers["age"]) < 20) == (200, True)
        for path in ("status", "occurrences", f"jobs/{JOB}", "audit", "alerts", f"occurrences/{JOB}:2026-08-25T02:00Z"):
            answer = await console.get(f"/api/v1/{path}")
            status, detail = told(answer)
            assert (status, bool(detail)) == (503, True)
            assert int(answer.headers["retry-after"]) >= 1
        await proxy.accept()

        async def back() -> bool:
            return (await console.get("/api/v1/status")).status == 200

        await until(back)


async def test_a_small_answer_does_not_wait_for_the_one_before(database_url: str) -> None:
    async with serving(database_url) as console:
        raw = [await console.client.get("/api/v1/nowhere") for _ in range(20)]
    # What is held back until it is acknowledged takes 40 ms, each time.
    assert min(one.elapsed.total_seconds() for one in raw[1:]) < 0.035
