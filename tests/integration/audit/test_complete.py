"""Every act has its row: who or what, when, why, and what was before and after; and no statement acts without one."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from schemas.audit import KINDS
from shared.postgres import Database, Session
from shared.version import VERSION
from tests.integration.audit.acts import ACTS, OPERATOR, Act
from tests.support.ledger import session_on
from trigger.audit_trail import Filter, list_audit, who

ROOT = Path(__file__).resolve().parents[3]
STATEMENTS = {
    f"{path.parts[-3]}/{path.stem}": path.read_text(encoding="utf-8")
    for package in ("shared", "trigger", "worker")
    for path in sorted(ROOT.glob(f"{package}/sql/*.sql"))
}
WRITES = re.compile(r"insert into matins\.audit\b")
KIND = re.compile(r"insert into matins\.audit \([^)]*\)\s*(?:select|values \() ?'([a-z_]+)'")
# What an act changes: where something stands, not how far it has got.
STANDING = re.compile(
    r"(?:set|,)\s+(?:state|ending|revision|paused_at|retired_at|held_since|retained_from|acknowledged_at|silenced_until)"
    r" = |insert into matins\.(?:occurrence|backfill|maintenance|job_revision) "
)
# Statements that change one of these and write no row, each with what tells of it.
TOLD_ELSEWHERE = {
    "shared/settle_delivery": "a message to people is no act; its alert has rows",
    "shared/vouch": "nothing changes",
    "shared/write_comparisons": "how far the watch has looked",
    "trigger/adopt_occurrences": "the definition's row: what stays expected follows it",
    "trigger/end_elsewhere": "audit_check_in, in the same transaction",
    "trigger/insert_ad_hoc": "the claim's row, in the same transaction",
    "trigger/insert_backfilled": "the backfill's row, in the same transaction, says which instants",
    "trigger/revise_job": "record_revision, in the same transaction",
    "trigger/start_elsewhere": "audit_check_in, in the same transaction",
    "trigger/start_rerun": "audit_rerun, in the same transaction",
}


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    """A connection, and the triggers that are known."""
    async with session_on(database_url) as opened:
        for name in ("one", "two"):
            await opened.execute(
                """insert into matins.instance (id, kind, host, version, message_version, tzdata_version)
                   values ($1, 'trigger', 'test', '7.7', 1, 'test')""",
                name,
            )
        yield opened


def fits(row: Any, act: Act) -> bool:
    """Tell whether a row says what the act's must."""
    by = None if row["actor"] is None else (row["actor"], row["actor_kind"])
    if by != act.by:
        return False
    for name, expected in (("before", act.before), ("after", act.after)):
        found = row["detail"].get(name)
        if expected is ... and not isinstance(found, dict):
            # The first definition, and a maintenance, have nothing before them.
            return False
        if expected is not ... and expected is not None and found != expected:
            return False
    return True


@pytest.mark.parametrize("name", ACTS)
async def test_an_act_has_its_row(database: Database, session: Session, name: str) -> None:
    act = ACTS[name]
    await act.do(database, session)
    rows = await session.fetch("select * from matins.audit where kind = $1 order by id", act.kind)
    assert any(fits(row, act) for row in rows), [dict(row) for row in rows]
    for row in rows:
        assert row["at"] is not None
        assert row["instance"], "who or what wrote it"
        if row["actor"] is not None:
            assert row["actor_kind"] in {"operator", "caller"}
            assert row["reason"], "why"
        if row["instance"] in {"one", "two"}:
            assert row["version"] == "7.7", "a process's release is that which it has recorded"


def test_every_kind_that_a_statement_writes_is_an_act_that_is_tried() -> None:
    written = {kind for text in STATEMENTS.values() for kind in KIND.findall(text)}
    assert len(written) > 15
    assert written - {act.kind for act in ACTS.values()} == set()


def test_the_kinds_that_are_listed_are_those_that_are_tried_and_told_of() -> None:
    # Signing in and out at the console needs a console, and is tried with one elsewhere.
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("trigger/console/sql/*.sql")]
    of_the_console = {kind for text in texts for kind in KIND.findall(text)}
    assert sorted(KINDS) == sorted(of_the_console | {act.kind for act in ACTS.values()})
    told = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8").partition("## What is written")[2]
    listed = [line.split("|")[1] for line in told.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    assert [kind for line in listed for kind in re.findall(r"`([a-z_]+)`", line)] == list(KINDS)


def test_no_statement_changes_where_something_stands_without_a_row() -> None:
    silent = {
        name for name, text in STATEMENTS.items() if STANDING.search(_outside_ledger(text)) and not WRITES.search(text)
    }
    assert silent - TOLD_ELSEWHERE.keys() == set()


def _outside_ledger(text: str) -> str:
    """Give a statement without its comments and without what it does to accounts, whose rows tell of themselves."""
    bare = re.sub(r"--[^\n]*", "", text)
    return "" if "update matins.ledger" in bare and "update matins.occurrence" not in bare else bare


async def test_a_reading_tells_instance_operator_and_caller_apart(database: Database, session: Session) -> None:
    for name in ("a second fire", "a claim that is given back"):
        await ACTS[name].do(database, session)
        await session.execute("truncate matins.attempt, matins.occurrence, matins.job_revision, matins.job cascade")
    await ACTS["a call"].do(database, session)
    told = {who(one).split(" ")[0] for one in await list_audit(session, Filter(), 100)}
    assert told == {"operator", "caller", "instance"}
    (called,) = await list_audit(session, Filter(actor="cron"), 100)
    assert (who(called), called["before"], called["after"]) == ("caller cron (7.7)", "expected", "claimed")
    assert {one["kind"] for one in await list_audit(session, Filter(kinds=("called", "released")), 9)} == {
        "called",
        "released",
    }
    assert len(await list_audit(session, Filter(), 2)) == 2


async def test_a_command_says_its_own_release(session: Session) -> None:
    await session.execute(f"set application_name = 'matins command {VERSION}'")
    await session.execute(
        "insert into matins.audit (kind, instance, actor, actor_kind) values ('x', 'nobody', $1, $2)", *OPERATOR
    )
    assert await session.fetchval("select version from matins.audit") == VERSION
