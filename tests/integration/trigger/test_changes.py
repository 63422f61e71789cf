"""Jobs that change, are renamed, or can't be read while others are due; and steps that come in an unusual order."""

from schemas.occurrence import Identity
from shared.close import close
from shared.postgres import Database, Session
from tests.integration.trigger.support import (
    DAY,
    DUE,
    HOUR,
    LEASE,
    MINUTE,
    Broker,
    claimant,
    claimed,
    fanned_out,
    fill,
    job_at,
    planned,
    states,
)
from tests.support.checker import assert_none, check, record_history
from trigger.claim import Nothing, Won, claim_due, due_jobs
from trigger.fan_out import FanOut, FanOutEnd, seal, write_page
from trigger.pages import Page
from trigger.publish import Publishing, publish_pass
from trigger.reach import known_jobs

SETTLE = """
update matins.ledger set state = $1, finished_at = clock_timestamp(), started_at = clock_timestamp(), worker = 'test',
       attempts = 1, epoch = epoch + 1, error_class = case when $1 = 'failed' then 'x' end
 where state = 'pending' and account = any ($2::text[])
"""


async def test_an_occurrence_that_is_open_ends_by_the_definition_that_it_was_claimed_under(
    database: Database, session: Session
) -> None:
    await record_history(session)
    await fill(session, 2)
    former = job_at(partial_ok=1.0)
    claim = await claimed(session, former)
    changed = job_at("0 3 * * *", partial_ok=0.0)
    revision = await planned(session, changed, DUE + MINUTE, instance="two")
    assert revision == 2
    assert await fanned_out(database, former, claim) is FanOutEnd.SEALED
    await session.execute(SETTLE, "failed", ["account-00001", "account-00002"])
    closed = await close(session, claim.id, by="test")
    assert closed is not None
    assert closed.state == "succeeded", "as the former definition says of failures"
    assert await claim_due(session, changed, revision, claimant("two"), now=DUE + HOUR + MINUTE) == Nothing()
    won = await claim_due(session, changed, revision, claimant("two"), now=DUE + DAY + HOUR)
    assert isinstance(won, Won)
    found = await states(session)
    assert [found[day] for day in ("25 02:00", "25 03:00", "26 03:00")] == [
        "succeeded",
        "skipped: superseded",
        "claimed",
    ]
    audited = await session.fetch(
        "select detail ->> 'revision' as revision from matins.audit where kind = 'definition'"
    )
    assert [row["revision"] for row in audited] == ["1", "2"]
    assert_none(await check(session, effect_table=None, at_rest=False))


async def test_a_job_that_is_renamed_runs_once_and_leaves_its_rows(database: Database, session: Session) -> None:
    await record_history(session)
    await fill(session, 2)
    former, renamed, removed = job_at(name="invoice"), job_at(name="invoices"), job_at(name="removed")
    for job in (former, removed):
        await planned(session, job, DUE - DAY)
    before = await session.fetchval("select count(*) from matins.occurrence where job <> 'invoices'")
    revision = await planned(session, renamed, DUE - MINUTE, instance="two")
    assert await due_jobs(session, ["invoices"], "two", now=DUE) == {"invoices"}
    won = await claim_due(session, renamed, revision, claimant("two"), now=DUE)
    assert isinstance(won, Won)
    assert await fanned_out(database, renamed, won.claim) is FanOutEnd.SEALED
    ran = await session.fetch("select job from matins.occurrence where claimed_at is not null")
    assert [row["job"] for row in ran] == ["invoices"]
    assert await session.fetchval("select count(*) from matins.occurrence where job <> 'invoices'") == before
    assert (await states(session, "invoice"))["25 02:00"] == "expected", "what was due under the former name is told"
    assert sorted(await known_jobs(session)) == ["invoice", "invoices", "removed"]
    assert_none(await check(session, effect_table=None, at_rest=False))


async def test_a_job_row_that_cannot_be_read_stops_no_other_job(database: Database, session: Session) -> None:
    await fill(session, 2)
    good = [job_at(name="first"), job_at(name="second")]
    revisions = [await planned(session, job, DUE - DAY) for job in good]
    await session.execute(
        """insert into matins.job (name, revision, definition, fingerprint, known_since, planned_through)
           select 'mars', 1, jsonb_set(definition, '{schedule,zone}', '"Mars/Phobos"'), 'none', known_since, $1
             from matins.job where name = 'first'""",
        DUE - HOUR,
    )
    names = ["first", "mars", "second"]
    assert await due_jobs(session, names, "one", now=DUE) == {"first", "second"}
    for job, revision in zip(good, revisions, strict=True):
        won = await claim_due(session, job, revision, claimant(), now=DUE)
        assert isinstance(won, Won)
        assert won.claim.identity == Identity(job.name, DUE)
        assert await fanned_out(database, job, won.claim) is FanOutEnd.SEALED


async def test_what_is_settled_before_the_seal_closes_nothing(database: Database, session: Session) -> None:
    await record_history(session)
    job = job_at()
    claim = await claimed(session, job)
    work = FanOut(database, job, claimant())
    first = await write_page(work, claim, Page(("a", "b"), '["b"]', last=False))
    assert first is not None
    await session.execute(SETTLE, "succeeded", ["a", "b"])
    assert await close(session, claim.id, by="test") is None, "three more are still to be read"
    second = await write_page(work, first, Page(("c", "d", "e"), '["e"]', last=True))
    assert second is not None
    await session.execute(SETTLE, "succeeded", ["c", "d"])
    assert await seal(work, second) is FanOutEnd.SEALED
    assert await close(session, claim.id, by="test") is None, "one is open"
    await session.execute(SETTLE, "succeeded", ["e"])
    closed = await close(session, claim.id, by="test")
    assert closed is not None
    assert closed.report.counts.succeeded == 5
    assert await close(session, claim.id, by="test") is None, "closed once"
    assert_none(await check(session, effect_table=None, at_rest=False))


async def test_nothing_is_published_before_its_row_is_committed_or_if_it_never_is(
    database: Database, session: Session, other_session: Session
) -> None:
    job, broker = job_at(), Broker()
    claim = await claimed(session, job)
    publishing = Publishing(database, job, broker.send, "test.work", "one", LEASE, 1000, now=DUE + MINUTE)
    page = FanOut(database, job, claimant())
    slow = other_session.transaction()
    await slow.start()
    await other_session.execute(
        """insert into matins.ledger (occurrence_id, scheduled_at, account, position) values ($1, $2, 'ghost', 1)""",
        claim.id,
        DUE,
    )
    await publish_pass(publishing)
    assert broker.messages == [], "not committed yet"
    await slow.rollback()
    await publish_pass(publishing)
    assert broker.messages == [], "and never"
    written = await write_page(page, claim, Page(("a",), '["a"]', last=True))
    assert written is not None
    await publish_pass(publishing)
    assert broker.accounts() == ["a"]
