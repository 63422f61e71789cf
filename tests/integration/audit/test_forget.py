"""Forgetting an account: its name is nowhere in the schema any more, and the chain is whole."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.close import close
from shared.migrate import enter_environment
from shared.postgres import Session
from shared.terminal import Refused
from tests.integration.audit.trail import append, seal_all
from tests.integration.operate.night import ORDER, closed_night, nightly
from tests.support.ledger import DUE, ledger, occurrence_row, running_occurrence, session_on
from trigger.forget import forget
from trigger.operate import Choice, rerun
from trigger.verify_audit import verify

ROOT = Path(__file__).resolve().parents[3]
ACCOUNT = 'customer "47/11"\\é'
NIGHT: dict[str, tuple[str, str | None]] = {
    "customer 4": ("failed", "TaxServiceDown"),
    ACCOUNT: ("failed", "TaxServiceDown"),
    "other": ("succeeded", None),
}
TEXTS = """select table_name, column_name, data_type from information_schema.columns
            where table_schema = 'matins' and data_type in ('text', 'jsonb')
              and table_name in (select relname from pg_class where relkind in ('r', 'p'))"""


# What names no account: names, words and numbers of ours, texts of the author's, and who acted. A browser's way back is
# there for minutes.
NAMES_NONE = re.compile(
    r"""job|kind|subject|state|event|mode|meanwhile|origin|variant|version|name|fingerprint|definition|definitions|host|region
        |instance|holder|caller|webhook_id|channel|thread|queues|jobs|topology|server|system|mark|checksum|ending|seen
        |tzdata_version|trace_context|key_salt|worker|error_class|deliverer|run_id|duration|lag|id|actor|actor_kind|\w+_by
        |means|issuer|form|notice|return_path""",
    re.VERBOSE,
)


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    """A session on a database that is named."""
    async with session_on(database_url) as opened:
        await enter_environment(opened, "test", create=True)
        yield opened


async def named(session: Session, account: str) -> list[str]:
    """Give the columns of the whole schema in which an account stands, as text or within a document."""
    found = []
    for row in await session.fetch(TEXTS):
        table, column, kind = row["table_name"], row["column_name"], row["data_type"]
        needle = "$1::text" if kind == "text" else """btrim(to_json($1::text)::text, '"')"""
        query = f'select count(*) from matins."{table}" where strpos("{column}"::text, {needle}) > 0'
        if await session.fetchval(query, account):
            found.append(f"{table}.{column}")
    return sorted(found)


async def night_that_names_it(session: Session) -> Any:
    """Leave the account in every place that it can come to."""
    night, _ = await closed_night(session, accounts=NIGHT)
    await rerun(session, night.identity, Choice((ACCOUNT,)), replace(ORDER, reason=f"books of {ACCOUNT} are right"))
    await session.execute(
        """update matins.ledger set state = 'failed', error_class = 'X', error = $1, result = to_jsonb($1::text),
                  finished_at = $2 where account = $1""",
        ACCOUNT,
        DUE,
    )
    await session.execute("update matins.ledger set error = 'not ' || $1 where account = 'customer 4'", ACCOUNT)
    await close(session, night.id, by="test")
    await session.execute("insert into matins.account_lock values ('invoice-run', $1)", ACCOUNT)
    await session.execute("update matins.occurrence set cursor = jsonb_build_array($1::text)::text", ACCOUNT)
    await session.execute("update matins.job set pause_reason = 'for ' || $1", ACCOUNT)
    alert = await session.fetchval(
        """insert into matins.alert (kind, subject, told, detail, opened_by)
           values ('failed', 'night', 'failed: ' || $1, jsonb_build_object('examples', array[$1]), 'x') returning id""",
        ACCOUNT,
    )
    await session.execute(
        """insert into matins.notification (alert_id, event, body)
           values ($1, 'opened', jsonb_build_object('told', $2::text))""",
        alert,
        ACCOUNT,
    )
    return night


async def test_it_is_named_nowhere_and_the_chain_is_whole(session: Session) -> None:
    night = await night_that_names_it(session)
    await seal_all(session)
    await append(session, f"{ACCOUNT} asked")  # not sealed yet
    assert len(await named(session, ACCOUNT)) >= 9
    forgotten = await forget(session, ACCOUNT, replace(ORDER, reason="asked to be forgotten"))
    assert await named(session, ACCOUNT) == []
    assert (forgotten.accounts, forgotten.locks, forgotten.redacted) == (1, 1, 2)
    rows = await ledger(session, night.id)
    assert set(rows) == {"customer 4", forgotten.pseudonym, "other"}
    assert rows[forgotten.pseudonym]["result"] is None
    report = (await occurrence_row(session, night.id))["report"]
    assert forgotten.pseudonym in str(report)
    entry: Any = await session.fetchrow("select * from matins.audit where kind = 'account_forgotten'")
    assert (entry["actor"], entry["actor_kind"], entry["reason"]) == ("ann", "operator", "asked to be forgotten")
    verified = await verify(session, {})
    assert (verified.found, verified.redacted) == (0, 1)
    await seal_all(session)
    verified = await verify(session, {})
    assert (verified.found, verified.redacted) == (0, 1)
    await session.execute("update matins.audit set reason = 'x' where kind = 'rerun'")
    assert [one.what for one in (await verify(session, {})).problems] == ["altered"], "what it says now is sealed too"


async def test_every_column_that_could_name_it_is_seen_to(session: Session) -> None:
    statements = [path.read_text() for path in ROOT.glob("trigger/sql/forget_*.sql")]
    left = [
        f"{row['table_name']}.{row['column_name']}"
        for row in await session.fetch(TEXTS)
        if not re.match(r"ledger_\d", row["table_name"])
        and not NAMES_NONE.fullmatch(row["column_name"])
        and not any(
            re.search(rf"matins\.{row['table_name']}\b", text) and re.search(rf"\b{row['column_name']}\b", text)
            for text in statements
        )
    ]
    assert left == []


async def test_it_is_not_run_again_under_its_pseudonym_and_the_others_are(session: Session) -> None:
    night = await night_that_names_it(session)
    forgotten = await forget(session, ACCOUNT, ORDER)
    with pytest.raises(Refused, match="was made to forget"):
        await rerun(session, night.identity, Choice((forgotten.pseudonym,)), ORDER)
    assert (await rerun(session, night.identity, Choice(), ORDER)).accounts == 1
    assert (await ledger(session, night.id))["customer 4"]["state"] == "pending"


async def test_a_dry_run_counts_the_same_and_changes_nothing(session: Session) -> None:
    await night_that_names_it(session)
    before = await named(session, ACCOUNT)
    dry = await forget(session, ACCOUNT, ORDER, dry_run=True)
    assert await named(session, ACCOUNT) == before
    done = await forget(session, ACCOUNT, ORDER)
    assert replace(dry, pseudonym="") == replace(done, pseudonym="")


async def test_an_open_row_is_refused_and_nothing_is_changed(session: Session) -> None:
    await night_that_names_it(session)
    await running_occurrence(session, nightly("other-run"), [ACCOUNT])
    before = await named(session, ACCOUNT)
    with pytest.raises(Refused, match="other-run:2026-08-25T02:00Z"):
        await forget(session, ACCOUNT, ORDER)
    assert await named(session, ACCOUNT) == before


async def test_a_reason_that_names_it_is_refused(session: Session) -> None:
    with pytest.raises(Refused, match="names the account"):
        await forget(session, "4711", replace(ORDER, reason="4711 asked"))


async def test_an_account_within_a_longer_word_is_another(session: Session) -> None:
    await append(session, "47110 and x4711, but 4711-a and (4711)")
    forgotten = await forget(session, "4711", ORDER)
    reason = await session.fetchval("select reason from matins.audit where kind = 'called'")
    assert reason == f"47110 and x4711, but {forgotten.pseudonym}-a and ({forgotten.pseudonym})"


async def test_numbers_and_other_documents_stay(session: Session) -> None:
    await session.execute(
        'insert into matins.audit (kind, detail) values (\'x\', \'{"n": 7, "a": ["7", null, {}], "e": []}\')'
    )
    forgotten = await forget(session, "7", ORDER)
    detail = await session.fetchval("select detail from matins.audit where kind = 'x'")
    assert detail == {"n": 7, "a": [forgotten.pseudonym, None, {}], "e": []}
