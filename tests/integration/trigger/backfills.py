"""A job of hourly instants with some past, and steps of its backfill, for the tests of backfills."""

from datetime import datetime
from typing import Any

from shared.job import Job
from shared.postgres import Session
from tests.integration.trigger.support import DUE, HOUR, claimant, decisions, job_at, planned
from trigger.backfill_pass import advance_backfill
from trigger.claim import Won, claim_due
from trigger.claim_outcome import Nothing

JOB = job_at("0 * * * *", decisions=decisions(catch_up="skip", catch_up_within=HOUR))
NAME = JOB.name
# Ten hours: what became of each, by its hour.
PAST = {
    16: "succeeded",
    17: "failed",
    18: "partial",
    19: "missed",
    20: "coalesced",
    21: "skipped: paused",
    22: "skipped: superseded",
    23: "cancelled",
    0: "succeeded",
}
NOW = DUE


def instant(hour: int) -> datetime:
    """Give the instant of an hour of the night before DUE."""
    return DUE.replace(hour=hour) - (24 * HOUR if hour > DUE.hour else 0 * HOUR)


async def past(session: Session, job: Job = JOB, became: dict[int, str] | None = None) -> int:
    """Plan from 15:00 to now, and have each hour become what is said; the last ones are skipped. Give the revision."""
    revision = await planned(session, job, instant(15))
    for hour, told in (PAST if became is None else became).items():
        state, _, reason = told.partition(": ")
        if state in {"succeeded", "failed", "partial", "cancelled"}:
            await planned(session, job, instant(hour))
            won = await claim_due(session, job, revision, claimant(), now=instant(hour))
            assert isinstance(won, Won)
            await end(session, won.claim.id, state)
        else:
            await session.execute(
                """update matins.occurrence
                      set state = $1, reason = $2, coalesced_into = case when $1 = 'coalesced' then (
                              select min(id) from matins.occurrence where state = 'succeeded') end
                    where job = $3 and scheduled_at = $4""",
                state,
                reason or "nobody was there",
                job.name,
                instant(hour),
            )
    await planned(session, job, NOW)
    await session.execute(
        """update matins.occurrence set state = 'skipped', reason = 'catch_up'
            where job = $1 and state = 'expected' and scheduled_at <= $2""",
        job.name,
        NOW,
    )
    return revision


async def end(session: Session, occurrence_id: int, state: str, now: datetime = NOW) -> None:
    """Have an occurrence end in a state, with a failed account if it did not succeed."""
    if state != "succeeded" and not await session.fetchval(
        "select exists (select from matins.ledger where occurrence_id = $1)", occurrence_id
    ):
        await session.execute(
            """insert into matins.ledger
                   (occurrence_id, scheduled_at, account, position, state, finished_at, error_class)
               select id, scheduled_at, 'a', 1, 'failed', $2, 'E' from matins.occurrence where id = $1""",
            occurrence_id,
            now,
        )
    await session.execute(
        """update matins.ledger set state = 'succeeded', finished_at = $2, error_class = null
            where occurrence_id = $1 and state = 'pending'""",
        occurrence_id,
        now,
    )
    await session.execute(
        """update matins.occurrence
              set state = $2, reason = 'r', closed_at = $3, report = '{"counts": {}}', sealed_at = $3,
                  lease_until = null, total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0
            where id = $1""",
        occurrence_id,
        state,
        now,
    )


async def step(session: Session, name: str = "one", *, job: str = NAME, now: datetime = NOW) -> Won | Nothing:
    """Take one step of a job's backfill, as a trigger does."""
    return await advance_backfill(session, job, 1, claimant(name), now=now)


async def steps(session: Session) -> list[str]:
    """Take steps until nothing more starts, ending whatever runs; give the hours in the order in which they ran."""
    order: list[str] = []
    while True:
        outcome = await step(session)
        running = await session.fetch(
            """select id, scheduled_at, generation from matins.occurrence
                where state in ('claimed', 'running') order by id"""
        )
        for row in running:
            order.append(f"{row['scheduled_at']:%H}/{row['generation']}")
            await end(session, row["id"], "succeeded")
        if not running and outcome == Nothing():
            return order


async def items(session: Session) -> dict[str, Any]:
    """Give the states of the instants, by their hour."""
    rows = await session.fetch(
        "select scheduled_at, state, reason from matins.occurrence where job = $1 and scheduled_at <= $2 order by 1",
        NAME,
        NOW,
    )
    return {
        f"{row['scheduled_at']:%H}": f"skipped: {row['reason']}" if row["state"] == "skipped" else row["state"]
        for row in rows
    }
