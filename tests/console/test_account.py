"""The page of one account: it is found whatever its id holds, and what it says is the row's, shown as text."""

from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import quote, quote_plus, urlencode

import pytest

from shared.calls import idempotency_key
from shared.postgres import Session
from tests.console.night import HOSTILE
from tests.console.occurrences import TRACE
from tests.console.reading import shown
from tests.console.serving import serving
from tests.console.test_accounts import accounts_of
from tests.integration.operate.night import ORDER, closed_night, nightly
from tests.support.ledger import DUE, running_occurrence, session_on
from trigger.console.traces import Trace, trace_of
from trigger.operate import Choice, rerun

OCCURRENCE: Final = "/occurrences/invoice-run:2026-08-25T02:00Z"
IDS: Final = (
    *(text[:170] for text in HOSTILE),
    "a/b/../c",
    "a//b",
    "%2F%00%zz",
    "a?b#c&d=e;f",
    "a b+c",
    " ",
    ".",
    "..",
    "'; drop table matins.ledger; --",
    '"quoted"',
    "back\\slash",
    "\u202egnp.exe",
    "\u2066\u2067\u2069",
    "e\u0301",
    "\u00e9",
    "\u4f60\u597d \U0001f9fe",
    "\x01\x1b[31m\x7f\x85",
    "line\nbreak\r\ttab",
    "\u00e4" * 200,
    "x" * 512,
    "\U0010ffff",
    "None",
    "invalid:'a\\x00b':0123456789ab",
)


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    async with session_on(database_url) as opened:
        yield opened


def at(account: str) -> str:
    return f"{OCCURRENCE}/account?{urlencode({'id': account})}"


async def test_every_id_is_listed_found_and_shown_as_text(database_url: str, session: Session) -> None:
    occurrence, _ = await closed_night(session, accounts=dict.fromkeys(IDS, ("failed", "TaxServiceDown")))
    async with serving(database_url) as console:
        listed = (await console.get(f"{OCCURRENCE}/accounts")).text
        assert accounts_of(listed) == sorted(IDS)
        assert "<script>" not in listed.replace("<script src", "")
        for account in IDS:
            answer = await console.get(at(account))
            assert answer.status == 200, (account, answer.text)
            found = shown(answer.text)
            assert "failed" in found.heading
            assert idempotency_key(occurrence.identity, account) in found.facts()["Idempotency key"]
            # What would turn the text around, or move a terminal's cursor, is written out.
            assert not set("\u202e\u2066\u2067\u2069\x01\x1b\x7f\x85\r") & set(answer.text), account
            assert not found.node.query("script, img, iframe")
            exact = await console.get(f"{OCCURRENCE}/accounts?{urlencode({'q': account})}")
            assert "Exactly so named" in exact.text, account
            assert account in accounts_of(exact.text)
        for written in (quote("a b+c", safe=""), quote_plus("a b+c")):
            assert (await console.get(f"{OCCURRENCE}/account?id={written}")).status == 200


async def test_two_ids_that_look_alike_are_two(database_url: str, session: Session) -> None:
    await closed_night(session, accounts={"e\u0301": ("failed", "one"), "\u00e9": ("dead", "two")})
    async with serving(database_url) as console:
        assert shown((await console.get(at("e\u0301"))).text).heading.endswith("failed")
        assert shown((await console.get(at("\u00e9"))).text).heading.endswith("dead")


async def test_what_it_says_is_the_row(database_url: str, session: Session) -> None:
    occurrence, _ = await closed_night(session)
    await session.execute(
        """update matins.ledger
              set error = 'no answer' || E'\n' || '503', worker = '0123456789abcdef', trace_context = $2,
                  key_salt = 'pepper', result = $3
            where occurrence_id = $1 and account = 'b'""",
        occurrence.id,
        TRACE,
        {"charge": "<b>ch_1</b>"},
    )
    await session.execute(
        """insert into matins.instance (id, kind, host, version, message_version, tzdata_version)
           values ('0123456789abcdef', 'worker', 'web-3', '1.2.3', 1, 'test')"""
    )
    row: Any = await session.fetchrow("select * from matins.ledger where account = 'b'")
    async with serving(database_url, trace_url="https://traces.example/{trace_id}") as console:
        found = shown((await console.get(at("b"))).text)
    facts = found.facts()
    assert facts["Tries charged"] == f"{row['attempts']} of 5"
    assert facts["Starts not settled"] == str(row["starts"])
    assert facts["Started"] == "2026-08-25 02:00:00Z"
    assert facts["Ended"] == "2026-08-25 02:00:02Z"
    assert facts["Took"] == "2s"
    assert facts["Worker"] == "01234567 on web-3, release 1.2.3"
    key = idempotency_key(occurrence.identity, "b", salt="pepper")
    assert facts["Idempotency key"] == f"{key} a new key, by a re-run"
    assert found.links()["0af7651916cd43dd8448eb211c80319c"].startswith("https://traces.example/0af76519")
    errors = [one.to_text(strip=False) for one in found.node.query("pre")]
    assert errors[0] == "no answer\n503"
    assert errors[1] == '{\n    "charge": "<b>ch_1</b>"\n}'
    assert f"rerun {occurrence.identity} --account b --reason" in found.text


async def test_an_error_of_a_million_characters_is_cut_with_a_word(database_url: str, session: Session) -> None:
    occurrence = await running_occurrence(session, nightly(), ["a"])
    await session.execute(
        """update matins.ledger
              set state = 'failed', epoch = 1, error_class = $2, error = $3, finished_at = scheduled_at
            where occurrence_id = $1""",
        occurrence.id,
        "E" * 5000,
        "<b>" + "y" * 999_997,
    )
    async with serving(database_url) as console:
        page = (await console.get(at("a"))).text
        assert len(page) < 40_000
        assert "…[cut from 1000000 characters]" in page
        assert "&lt;b&gt;yyy" in page
        listed = (await console.get(f"{OCCURRENCE}/accounts")).text
        assert len(listed) < 20_000
        assert "…[cut from 1000000 characters]" in listed


@pytest.mark.parametrize(
    ("account", "told"),
    [
        ("a", "A worker is executing it"),
        ("b", "It has failed before, and waits for its next try."),
        ("c", "It waits to be executed."),
        ("d", "It succeeded."),
    ],
)
async def test_each_state_is_told_in_words(database_url: str, session: Session, account: str, told: str) -> None:
    occurrence = await running_occurrence(session, nightly(), ["a", "b", "c", "d"])
    await session.execute(
        """update matins.ledger
              set state = case account when 'a' then 'running' when 'd' then 'succeeded' else 'pending' end, epoch = 1,
                  lease_until = case account when 'a' then timestamptz '2126-08-25T03:00Z' end,
                  finished_at = case account when 'd' then scheduled_at end, nothing_to_do = account = 'd',
                  attempts = (account = 'b')::integer, error_class = case account when 'b' then 'TaxServiceDown' end,
                  not_before = case account when 'b' then timestamptz '2126-08-25T03:00Z' end
            where occurrence_id = $1""",
        occurrence.id,
    )
    async with serving(database_url) as console:
        found = shown((await console.get(at(account))).text)
    assert told in found.text
    facts = found.facts()
    assert ("Lease until" in facts) == (account == "a")
    assert (facts.get("Next try") == "2126-08-25 03:00:00Z") == (account == "b")
    assert facts["Ended"].endswith("with nothing to do") == (account == "d")


async def test_it_says_how_the_account_fared_at_other_times(database_url: str, session: Session) -> None:
    for days in range(4):
        await closed_night(
            session,
            accounts={"a": ("failed" if days % 2 else "succeeded", "TaxServiceDown" if days % 2 else None)},
            scheduled_at=DUE.replace(day=22 + days),
        )
    async with serving(database_url) as console:
        found = shown((await console.get(at("a"))).text)
    rows = found.table("around")
    assert [(row[0], row[1]) for row in rows] == [
        ("invoice-run:2026-08-24T02:00Z", "succeeded"),
        ("invoice-run:2026-08-23T02:00Z", "failed"),
        ("invoice-run:2026-08-22T02:00Z", "succeeded"),
    ]
    assert found.links()["invoice-run:2026-08-23T02:00Z"] == "/occurrences/invoice-run:2026-08-23T02:00Z/account?id=a"


async def test_what_happened_to_its_occurrence_stands_below(database_url: str, session: Session) -> None:
    occurrence, _ = await closed_night(session)
    await rerun(session, occurrence.identity, Choice(), ORDER)
    async with serving(database_url) as console:
        rows = shown((await console.get(at("b"))).text).table("events")
    assert [(row[1], row[2]) for row in rows] == [("closed", "instance test"), ("rerun", "operator ann")]


async def test_one_that_there_is_not_is_404_with_its_neighbours(database_url: str, session: Session) -> None:
    await running_occurrence(session, nightly(), ["a1", "a3"])
    async with serving(database_url) as console:
        for wanted, near in (("a2", "nearest: a1 and a3"), ("a0", "nearest: a1"), ("z", "nearest: a3")):
            answer = await console.get(at(wanted))
            assert answer.status == 404
            assert f"there is no account '{wanted}' in invoice-run:2026-08-25T02:00Z; {near}" in shown(answer.text).text


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("", "id: an account's id is needed"),
        ("?id=", "id: an account's id is needed"),
        ("?id=a%00b", "id: no account's id holds NUL"),
        (f"?id={'x' * 513}", "id: no account's id is longer than 512 bytes"),
    ],
)
async def test_what_is_no_id_says_so(database_url: str, session: Session, query: str, told: str) -> None:
    await running_occurrence(session, nightly(), ["a"])
    async with serving(database_url) as console:
        answer = await console.get(f"{OCCURRENCE}/account{query}")
    assert answer.status == 400
    assert told in shown(answer.text).text


async def test_an_id_that_cannot_be_typed_is_offered_in_no_command(database_url: str, session: Session) -> None:
    await closed_night(session, accounts={"\u202egnp": ("failed", "x"), "it's": ("failed", "x")})
    async with serving(database_url) as console:
        assert "--failed --reason" in shown((await console.get(at("\u202egnp"))).text).text
        assert "--account 'it'\"'\"'s' --reason" in shown((await console.get(at("it's"))).text).text


async def test_what_can_never_run_again_is_not_offered_to(database_url: str, session: Session) -> None:
    await closed_night(session)
    async with serving(database_url) as console:
        found = shown((await console.get(at("d"))).text)
    assert "It cannot be run again" in found.text
    assert "rerun" not in found.text


@pytest.mark.parametrize(
    ("context", "url", "expected"),
    [
        (TRACE, "", Trace("0af7651916cd43dd8448eb211c80319c", "")),
        (
            TRACE,
            "http://t/{trace_id}/x",
            Trace("0af7651916cd43dd8448eb211c80319c", "http://t/0af7651916cd43dd8448eb211c80319c/x"),
        ),
        (None, "http://t/{trace_id}", None),
        ("", "http://t/{trace_id}", None),
        (TRACE.upper(), "http://t/{trace_id}", None),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", "http://t/{trace_id}", None),
        (f"{TRACE}\n", "http://t/{trace_id}", None),
        ("javascript:alert(1)", "http://t/{trace_id}", None),
    ],
)
def test_a_trace_is_read_from_a_traceparent_alone(context: str | None, url: str, expected: Trace | None) -> None:
    assert trace_of(context, url) == expected
