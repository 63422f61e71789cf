"""The page of the audit trail lists what `audit` lists, leads through all of it, and says how far it is sealed."""

import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from schemas.occurrence import parse_identity
from shared.masking import plain
from shared.postgres import Session, database_now
from tests.console.night import HOSTILE
from tests.console.reading import Shown, shown
from tests.console.serving import Served, serving
from tests.integration.audit.trail import append, seal_all
from tests.integration.operate.night import closed_night
from tests.support.ledger import session_on
from trigger.audit_trail import Filter, list_audit, read_chain, who
from trigger.console.audit import ENTRIES_A_PAGE
from trigger.console.json_shown import changed
from trigger.verify_audit import verify

NIGHT = "invoice-run:2026-08-25T02:00Z"


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    async with session_on(database_url) as opened:
        yield opened


async def make_trail(session: Session) -> None:
    """Write entries of every sort: of an occurrence, of jobs and of none, by people, callers and instances."""
    occurrence, _ = await closed_night(session)
    now = await database_now(session)
    for place in range(90):
        text = HOSTILE[place % len(HOSTILE)]
        actor = (None, "ann", "cron", text[:100])[place % 4]
        await session.execute(
            """insert into matins.audit (at, kind, job, occurrence_id, instance, actor, actor_kind, reason, detail)
               values ($1, $2, $3, $4, 'instance-one', $5, $6, $7, $8)""",
            # Some at the very same time.
            now - timedelta(minutes=place // 3),
            ("pause", "claim", "rerun", "definition", "hold")[place % 5],
            (None, "invoice-run", "other", text[:60])[place % 4],
            occurrence.id if place % 4 == 1 else None,
            actor,
            None if actor is None else "caller" if actor == "cron" else "operator",
            None if place % 7 == 0 else text[:400],
            {"before": {"state": text[:90], "same": 1}, "after": {"state": "running", "same": 1}, "alert": place}
            if place % 2
            else {},
        )


def ids(html: str) -> list[int]:
    """Give the entries that a page shows."""
    return [int(number) for number in re.findall(r'<tr id="entry-(\d+)">', html)]


async def walked(console: Served, path: str) -> AsyncIterator[str]:
    """Follow the links from a page to what is older."""
    following: str | None = path
    while following:
        page = await console.get(following)
        assert page.status == 200
        yield page.text
        following = shown(page.text).links().get("Older")


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ({}, Filter()),
        ({"job": "invoice-run"}, Filter(job="invoice-run")),
        ({"occurrence": NIGHT}, Filter(occurrence=parse_identity(NIGHT))),
        ({"kind": "rerun"}, Filter(kinds=("rerun",))),
        ({"actor": "ann", "kind": "claim"}, Filter(kinds=("claim",), actor="ann")),
        ({"actor": HOSTILE[0][:100]}, Filter(actor=HOSTILE[0][:100])),
        ({"job": "no such job"}, Filter(job="no such job")),
    ],
)
async def test_all_pages_together_are_what_the_command_lists(
    database_url: str, session: Session, query: dict[str, str], asked: Filter
) -> None:
    await make_trail(session)
    expected = await list_audit(session, asked, 1000)
    found: list[int] = []
    async with serving(database_url) as console:
        async for html in walked(console, f"/audit?{urlencode(query)}"):
            assert len(ids(html)) <= ENTRIES_A_PAGE
            assert "<script>document" not in html
            found += ids(html)
            # What is written meanwhile stands before all of it, and moves nothing.
            await append(session, "meanwhile")
    assert found == [one["id"] for one in expected]


async def test_since_is_included_and_before_is_not(database_url: str, session: Session) -> None:
    await make_trail(session)
    entries = await list_audit(session, Filter(), 1000)
    since, until = entries[80]["at"], entries[20]["at"]
    asked = Filter(since=since, until=until)
    async with serving(database_url) as console:
        query = urlencode({"since": since.isoformat(), "until": until.isoformat()})
        found = [one async for html in walked(console, f"/audit?{query}") for one in ids(html)]
    expected = [one["id"] for one in await list_audit(session, asked, 1000)]
    assert found == expected
    assert 0 < len(expected) < len(entries)


async def test_an_entry_says_who_what_why_and_what_changed(database_url: str, session: Session) -> None:
    await make_trail(session)
    await seal_all(session)
    (last,) = await append(session, "the last", kind="hold")
    async with serving(database_url) as console:
        page = await console.get("/audit")
    main = shown(page.text)
    entries = await list_audit(session, Filter(), ENTRIES_A_PAGE)
    rows = main.table("trail")
    assert len(rows) == len(entries) == ENTRIES_A_PAGE
    for row, one in zip(rows, entries, strict=True):
        assert row[1] == one["kind"]
        assert row[2] == (one["occurrence"] or plain(one["job"] or "-", 80).replace("\n", " "))
        assert row[3] == " ".join(plain(who(one), 160).split())
        assert row[4] == (" ".join(plain(one["reason"], 600).split()) if one["reason"] else "-")
        assert row[6] == (str(one["position"]) if one["position"] else "not yet")
        if one["before"]:
            assert row[5].startswith("state ")
            assert "became running" in row[5]
            # What is alike on both sides is in full alone.
            assert "same" not in row[5].partition("In full")[0]
            assert '"same": 1' in row[5].partition("In full")[2]
    assert entries[0]["id"] == last
    assert rows[0][6] == "not yet"
    assert main.links()[NIGHT] == f"/occurrences/{NIGHT}"


def told_chain(main: Shown) -> str:
    (banner,) = main.node.query(".banner")
    return " ".join(banner.to_text(separator="", strip=False).replace("\u202f", "").split())


async def test_how_far_it_is_sealed_is_what_verify_computes(database_url: str, session: Session) -> None:
    async with serving(database_url) as console:
        assert "Nothing is sealed yet. All entries are sealed." in told_chain(shown((await console.get("/audit")).text))
    await append(session, *map(str, range(7)))
    assert (await read_chain(session)).waiting == (await verify(session, {})).unsealed.rows == 7
    await seal_all(session)
    await append(session, "a", "b")
    verified, chain = await verify(session, {}), await read_chain(session)
    assert (chain.position, chain.hash) == (verified.position, verified.hash.hex())
    assert (chain.waiting, chain.oldest) == (verified.unsealed.rows, verified.unsealed.oldest)
    assert chain.waiting == 2
    async with serving(database_url) as console:
        told = told_chain(shown((await console.get("/audit")).text))
    assert told.startswith("Sealed through position 7, at ")
    assert "2 entries wait for the sealer, the oldest since " in told
    assert told.endswith(f"{verified.hash.hex()}@7")
    assert "see whether one lives" not in told


async def test_a_sealer_that_is_away_is_told_of(database_url: str, session: Session) -> None:
    await session.execute(
        "insert into matins.audit (at, kind, instance) values (clock_timestamp() - interval '2 minutes', 'hold', 'one')"
    )
    async with serving(database_url) as console:
        told = told_chain(shown((await console.get("/audit")).text))
    assert "1 entry waits for the sealer" in told
    assert "Triggers seal every five seconds: see whether one lives." in told


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"kind": "claims"}, "kind: 'claims' is unknown; valid are claim, takeover"),
        ({"occurrence": "nightly"}, "occurrence: not an occurrence: 'nightly'; write it as JOB:2026-08-25T02:00Z"),
        ({"occurrence": NIGHT, "job": "other"}, f"job: {NIGHT} is of invoice-run"),
        ({"since": "yesterday"}, "since: 'yesterday' is not an instant; write 2026-08-25T02:00Z"),
        ({"until": "2026-08-25T02:00"}, "until: '2026-08-25T02:00' names no zone"),
        ({"behind": "4711"}, "behind: '4711' is no place in the trail; follow the links"),
        ({"behind": "2026-99-99T00:00:00.000000Z,1"}, "is no place in the trail"),
        ({"behind": "2026-08-25T02:00:00.000000Z,9999999999999999999"}, "is no place in the trail"),
        ({"actor": "x" * 201}, "actor: at most 200 characters"),
        ({"job": "<script>"}, ""),
    ],
)
async def test_what_cannot_be_read_says_where_and_what_is_valid(
    database_url: str, query: dict[str, str], told: str
) -> None:
    async with serving(database_url) as console:
        page = await console.get(f"/audit?{urlencode(query)}")
    assert page.status == (400 if told else 200)
    assert told in shown(page.text).text
    assert "<script>" not in page.text


async def test_an_empty_trail_says_what_would_be_there(database_url: str) -> None:
    async with serving(database_url) as console:
        assert "Nothing was done yet." in shown((await console.get("/audit")).text).text
        assert "No entry is of that." in shown((await console.get("/audit?job=x")).text).text
        old = "/audit?behind=2026-08-25T02:00:00.000000Z,1"
        assert "Nothing older is in the trail." in shown((await console.get(old)).text).text


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1, "b": 2}, {"b": 3, "c": None}, [("a", 1, None), ("b", 2, 3)]),
        ({"a": {"x": 1}}, {"a": {"x": 2}}, [("a", {"x": 1}, {"x": 2})]),
        ("expected", "claimed", []),
        (None, {"a": 1}, []),
        ({}, {}, []),
    ],
)
def test_what_differs_between_two_documents(before: Any, after: Any, expected: list[Any]) -> None:
    assert changed(before, after) == expected


def test_the_place_in_a_link_is_exact_to_the_microsecond() -> None:
    written = "2026-08-25T02:00:00.000001Z"
    assert datetime.fromisoformat(written).microsecond == 1
