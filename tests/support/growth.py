"""Nights whose runs took what a test says, as the services would have left them."""

from collections.abc import Callable
from datetime import timedelta

from shared.definition import definition_of, fingerprint
from shared.job import Job
from shared.postgres import Session
from tests.support.ledger import DUE

DAY = timedelta(days=1)


async def known_job(session: Session, job: Job) -> None:
    """Record a job's declaration."""
    definition = definition_of(job)
    given = (job.name, definition, fingerprint(definition), DUE)
    await session.execute(
        """insert into matins.job (name, revision, definition, fingerprint, known_since, planned_through)
           values ($1, 1, $2, $3, $4, $4) on conflict do nothing""",
        *given,
    )
    await session.execute(
        """insert into matins.job_revision (job, revision, definition, fingerprint, effective_from, recorded_by)
           values ($1, 1, $2, $3, $4::timestamptz - interval '400 days', 'test') on conflict do nothing""",
        *given,
    )


async def run_nights(
    session: Session,
    job: Job,
    seconds: Callable[[int], float],
    *,
    count: int = 50,
    lag: Callable[[int], float] = lambda _: 0.5,
    state: str = "succeeded",
) -> None:
    """Record nights in a row, the last of them at DUE: what each took in seconds, and how late it began."""
    await known_job(session, job)
    nights = [DUE - (count - 1 - night) * DAY for night in range(count)]
    await session.execute(
        """insert into matins.occurrence (job, scheduled_at, state, revision, window_since, window_until, reason,
               tzdata_version, epoch, claimed_by, claimed_at, opened_at, sealed_at, closed_at, total, succeeded,
               failed, dead, cancelled, report)
           select $1, night, $5, 1, night - interval '1 day', night, 'test', 'test', 1, 'test', begun, begun, begun,
                  begun + make_interval(secs => took), 10, 10, 0, 0, 0, '{}'
             from unnest($2::timestamptz[], $3::double precision[], $4::double precision[]) as given (night, took, lag)
            cross join lateral (select night + make_interval(secs => lag) as begun) as begins""",
        job.name,
        nights,
        [seconds(night) for night in range(count)],
        [lag(night) for night in range(count)],
        state,
    )
