"""The list of an occurrence's accounts: pages forwards and back are what SQL says, whatever is asked for."""

import html
import re
from collections.abc import AsyncIterator, Sequence
from itertools import groupby
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.postgres import Session
from tests.console.reading import shown
from tests.console.serving import Served, serving
from tests.integration.operate.night import nightly
from tests.support.fleet import until
from tests.support.ledger import running_occurrence, session_on
from trigger.console import account_pages
from trigger.console.account_pages import ACCOUNTS_A_PAGE, BEYOND_ALL, STATES, UNSUCCESSFUL, beyond

PAGE: Final = "/occurrences/invoice-run:2026-08-25T02:00Z/accounts"
ROWS: Final = 5000
_LINK: Final = re.compile(r'<th scope="row"[^>]*><a href="([^"]+)"')
_ORDER: Final = """
    select account from matins.ledger
     where occurrence_id = $1 and state = any ($2::text[]) and starts_with(account, $3)
     order by case state when 'failed' then 1 when 'dead' then 2 when 'cancelled' then 3 else 4 end, {}"""


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    async with session_on(database_url) as opened:
        yield opened


async def mixed(session: Session, count: int = ROWS) -> int:
    """Record a running occurrence with accounts in every state, whose ids are not in the order of their positions."""
    names = [f"{'AaÄz'[number % 4]}{number * 7919 % count:05d}" for number in range(count)]
    occurrence = await running_occurrence(session, nightly(), names)
    await session.execute(
        """with fate as (
               select account, (array['failed', 'dead', 'cancelled', 'pending', 'running', 'succeeded', 'succeeded'])
                               [1 + (position * 5 + position / 11) % 7] as state
                 from matins.ledger where occurrence_id = $1)
           update matins.ledger l
              set state = fate.state, epoch = 1, lease_until = case fate.state when 'running' then l.scheduled_at end,
                  finished_at = case when fate.state not in ('pending', 'running') then l.scheduled_at end,
                  error_class = case when fate.state in ('failed', 'dead') then 'TaxServiceDown' end
             from fate
            where l.occurrence_id = $1 and l.account = fate.account""",
        occurrence.id,
    )
    return occurrence.id


def accounts_of(text: str) -> list[str]:
    """Give the accounts that a page lists, from where they lead."""
    return [parse_qs(urlsplit(html.unescape(href)).query)["id"][0] for href in _LINK.findall(text)]


def link_of(text: str, rel: str) -> str | None:
    found = re.search(rf'<a rel="{rel}" href="([^"]+)"', text)
    return None if found is None else html.unescape(found[1])


async def followed(console: Served, path: str, rel: str) -> tuple[list[list[str]], str]:
    """Follow a list to its end; give the accounts of each page, and where the last one is."""
    pages: list[list[str]] = []
    while True:
        answer = await console.get(path)
        assert answer.status == 200, answer.text
        pages.append(accounts_of(answer.text))
        further = link_of(answer.text, rel)
        if further is None:
            return pages, path
        path = further


@pytest.mark.timeout(300)
@pytest.mark.parametrize("prefix", ["", "a", "Ä0"])
async def test_pages_forwards_and_back_are_what_sql_says(database_url: str, session: Session, prefix: str) -> None:
    occurrence = await mixed(session)
    async with serving(database_url) as console:
        for state in ("", *STATES):
            order = "position" if state in {"pending", "running"} and not prefix else "account"
            rows = await session.fetch(_ORDER.format(order), occurrence, [state] if state else list(STATES), prefix)
            expected = [row["account"] for row in rows]
            assert expected, state
            forwards, last = await followed(console, f"{PAGE}?state={state}&q={quote(prefix)}", "next")
            assert [one for page in forwards for one in page] == expected, state
            assert {len(page) for page in forwards[:-1]} <= {ACCOUNTS_A_PAGE}
            backwards, _ = await followed(console, last, "prev")
            assert backwards[::-1] == forwards, state


async def test_a_state_that_is_rare_is_looked_for_some_at_a_time(
    database_url: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    occurrence = await running_occurrence(session, nightly(), [f"a{number:05d}" for number in range(2000)])
    await session.execute(
        """update matins.ledger set state = 'succeeded', epoch = 1, finished_at = scheduled_at
            where occurrence_id = $1 and account in ('a00700', 'a01500', 'a01999')""",
        occurrence.id,
    )
    monkeypatch.setattr(account_pages, "FIRST_LOOK", 50)
    monkeypatch.setattr(account_pages, "LOOK", 100)
    monkeypatch.setattr(account_pages, "MOST_LOOKS", 4)
    for state, found in (("succeeded", ["a00700", "a01500", "a01999"]), ("running", [])):
        path = f"{PAGE}?state={state}"
        async with serving(database_url) as console:
            first = await console.get(path)
            assert accounts_of(first.text) == []
            assert "350 accounts were looked through, and none of these was among them" in shown(first.text).text
            forwards, last = await followed(console, path, "next")
            assert [one for page in forwards for one in page] == found
            assert len(forwards) == 6
            assert forwards[-1] != [] or state == "running"
            back, _ = await followed(console, last, "prev")
            assert [one for page in back[::-1] for one in page] == found


async def test_those_that_did_not_succeed_stand_first(database_url: str, session: Session) -> None:
    await mixed(session, 40)
    async with serving(database_url) as console:
        found = shown((await console.get(PAGE)).text)
    states = [row.query("td")[0].to_text().strip() for row in found.node.query("tbody tr")]
    assert [one for one, _ in groupby(states) if one in UNSUCCESSFUL] == list(UNSUCCESSFUL)
    assert states[0] == "failed"


async def test_an_account_that_is_named_exactly_so_is_named_first(database_url: str, session: Session) -> None:
    await running_occurrence(session, nightly(), ["a", "ab", "abc", "b%", "b_", "B", " lead", "tail "])
    cases: list[tuple[str, str | None, Sequence[str]]] = [
        ("a", "a", ["a", "ab", "abc"]),
        ("ab", "ab", ["ab", "abc"]),
        ("b", None, ["b%", "b_"]),
        ("b%", "b%", ["b%"]),
        (" lead", " lead", [" lead"]),
        ("tail ", "tail ", ["tail "]),
        ("lead", None, []),
        ("'; drop table matins.ledger; --", None, []),
    ]
    async with serving(database_url) as console:
        for wanted, exact, begins in cases:
            answer = await console.get(f"{PAGE}?q={quote(wanted)}")
            assert answer.status == 200
            assert accounts_of(answer.text) == begins, wanted
            assert ("Exactly so named" in answer.text) == (exact is not None), wanted


async def test_numbers_beside_the_states_are_counted_behind_the_page(database_url: str, session: Session) -> None:
    occurrence = await mixed(session, 700)
    counts = {
        row["state"]: row["count"]
        for row in await session.fetch(
            "select state, count(*) from matins.ledger where occurrence_id = $1 group by state", occurrence
        )
    }
    async with serving(database_url) as console:
        assert f"failed ({counts['failed']})" not in (await console.get(PAGE)).text

        async def counted() -> str:
            text = (await console.get(PAGE)).text
            return text if "were counted" in text else ""

        text = await until(counted)
    assert set(STATES) <= counts.keys()
    for state, count in counts.items():
        assert f"{state} ({count})" in text


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("state=lost", "valid are failed, dead, cancelled, pending, running, succeeded"),
        ("after=a", "valid is failed:ACCOUNT, dead:ACCOUNT, cancelled:ACCOUNT, others:ACCOUNT"),
        ("after=failed:", "valid is failed:ACCOUNT"),
        ("before=nothing:a", "is no place in this list"),
        ("state=pending&after=pending:a", "valid is pending:POSITION"),
        (f"state=pending&after=pending:{'9' * 30}", "valid is pending:POSITION"),
        ("state=dead&after=failed:a", "valid is dead:ACCOUNT"),
        ("after=failed:a&before=failed:b", "give one of the two"),
        ("q=%00", "no account&#39;s id holds NUL"),
        ("after=failed:%00", "no account&#39;s id holds NUL"),
        (f"q={'%C3%A4' * 257}", "no account&#39;s id is longer than 512 bytes"),
    ],
)
async def test_what_cannot_be_asked_says_what_is_valid(
    database_url: str, session: Session, query: str, told: str
) -> None:
    await running_occurrence(session, nightly(), ["a"])
    async with serving(database_url) as console:
        answer = await console.get(f"{PAGE}?{query}")
    assert answer.status == 400
    assert told in answer.text


async def test_a_place_that_is_gone_is_where_it_was(database_url: str, session: Session) -> None:
    await running_occurrence(session, nightly(), [f"a{number:03d}" for number in range(120)])
    async with serving(database_url) as console:
        behind = await console.get(f"{PAGE}?after=others:a0605")
        assert accounts_of(behind.text)[0] == "a061"
        beyond_all = await console.get(f"{PAGE}?after=others:z")
        assert "No further account" in beyond_all.text
        before_all = await console.get(f"{PAGE}?before=others:A")
        assert accounts_of(before_all.text)[0] == "a000"


@given(st.text(min_size=1, max_size=6), st.text(max_size=6))
def test_what_lies_beyond_a_beginning_is_no_more_of_it(prefix: str, other: str) -> None:
    storable = [one for one in (prefix + other, other) if one and "\0" not in one and one.isprintable()]
    for account in storable:
        is_within = prefix.encode("utf-8", "replace") <= account.encode() < beyond(prefix).encode("utf-8", "replace")
        assert is_within == account.startswith(prefix)


def test_the_last_character_of_all_is_beyond_nothing() -> None:
    assert beyond("\U0010ffff") == BEYOND_ALL
    assert beyond("a\U0010ffff") == "b"
    assert beyond("\ud7ff") == "\ue000"
