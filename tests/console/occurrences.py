"""Occurrences for the console to show, made by the steps that make them: claimed, taken over, ended, run again."""

from datetime import timedelta
from typing import Any, Final

from schemas.occurrence import Identity
from shared.close import close
from shared.job import Job
from shared.postgres import Database, Session
from tests.integration.operate.night import ORDER
from tests.integration.trigger.support import DAY, DUE, HOUR, claimant, fill, job_at, live, planned
from trigger.claim import Claim, Won, claim_due
from trigger.fan_out import FanOut, fan_out, take_over
from trigger.operate import Choice, rerun

NAME: Final = "nightly"
IDENTITY: Final = Identity(NAME, DUE)
SECOND: Final = timedelta(seconds=1)
TRACE: Final = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def taken_over(database: Database, session: Session, accounts: int = 25, job: Job | None = None) -> Claim:
    """Have one trigger claim the night's occurrence and fall silent, and another one go on and read the accounts."""
    job = job or job_at()
    await fill(session, accounts)
    await live(session, "one", "two")
    revision = await planned(session, job, DUE - DAY)
    won = await claim_due(session, job, revision, claimant("one"), now=DUE + 3 * SECOND)
    assert isinstance(won, Won)
    lost = await claim_due(session, job, revision, claimant("two"), now=DUE + 4 * SECOND)
    assert not isinstance(lost, Won)
    claim = await take_over(session, [NAME], claimant("two"), now=DUE + HOUR)
    assert claim is not None
    await fan_out(FanOut(database, job, claimant("two"), now=DUE + HOUR), claim)
    return claim


async def ended(session: Session, occurrence_id: int, failed: int = 2, dead: int = 1) -> None:
    """Settle every account, the first of them badly, and close."""
    await session.execute(
        """with fate as (
               select account, case when position <= $2 then 'failed' when position <= $2 + $3 then 'dead' end as bad
                 from matins.ledger where occurrence_id = $1 and finished_at is null)
           update matins.ledger l
              set state = coalesce(fate.bad, 'succeeded'), attempts = 2, epoch = epoch + 1,
                  published_at = l.scheduled_at,
                  started_at = l.scheduled_at + interval '1 hour' + l.position * interval '1 s',
                  worker = 'w-1', trace_context = $4,
                  finished_at = l.scheduled_at + interval '1 hour 0.25 s' + l.position * interval '1 s',
                  error_class = case fate.bad when 'failed' then 'TaxServiceDown' when 'dead' then 'killed_worker' end,
                  error = case when fate.bad is not null then 'the tax service: 503' end
             from fate
            where l.occurrence_id = $1 and l.account = fate.account""",
        occurrence_id,
        failed,
        dead,
        TRACE,
    )
    assert await close(session, occurrence_id, by="two") is not None


async def run_again(session: Session, occurrence_id: int) -> None:
    """Run what did not succeed again, to a good end."""
    await rerun(session, IDENTITY, Choice(), ORDER)
    await ended(session, occurrence_id, failed=0, dead=0)


async def row_of(session: Session, identity: Identity = IDENTITY) -> Any:
    """Give an occurrence's row."""
    of = (identity.job, identity.scheduled_at, identity.variant)
    return await session.fetchrow(
        "select * from matins.occurrence where job = $1 and scheduled_at = $2 and variant = $3", *of
    )
