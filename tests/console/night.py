"""Nights for the console to show: none, one of everything, and a thousand jobs with a long past."""

from datetime import datetime, timedelta
from typing import Any, Final

from benchmarks.history import make_history
from schemas.occurrence import Identity
from shared.job import Cron, PerAccount
from shared.migrate import enter_environment
from shared.postgres import Session, database_now
from shared.zones import tzdata_version
from tests.support.alerts import open_alert
from tests.support.ledger import job_with, record_claims, running_occurrence

# What text can hold that a page must show as text: markup, a way out of an attribute, directions, marks above marks.
HOSTILE: Final = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "\u202eright to left\u202c and \u2066isolated",
    "cafe\u0301 and zalgo H\u0353\u0329\u0332e\u0309\u0303\u0340",
    "javascript:document.title='owned'",
    "one\nline\r\nand\tanother",
    "x" * 3000,
)
LONG: Final = "a word " * 150_000
JOB: Final = "invoice-run"
ACCOUNTS: Final = 60


async def nothing(call: object) -> None:
    """Do nothing."""


async def make_night(session: Session) -> str:
    """Record a job in a zone whose night before failed in many ways and whose present one runs; give the former's name.

    It has hostile ids, errors and reasons, alerts, a pause, and a trail of what was done.
    """
    await enter_environment(session, "test", create=True)
    present: datetime = await database_now(session)
    now = present.replace(minute=0, second=0, microsecond=0)
    await make_history(session, jobs=4, hours_ago=30, hours_ahead=49, now=now, zones=tzdata_version())
    job = job_with(
        PerAccount(nothing),
        JOB,
        schedule=Cron("30 2 * * *", zone="Europe/Berlin", gap="next_valid", fold="first"),
        description=f"Invoices. {HOSTILE[0]}",
    )
    ids = [f"a{number:05d}" for number in range(ACCOUNTS)] + [
        f"{text[:60]}-{place}" for place, text in enumerate(HOSTILE)
    ]
    before = now - timedelta(days=1)
    failed = await running_occurrence(session, job, ids, scheduled_at=before)
    await _fail(session, failed.id, before)
    running = await running_occurrence(session, job, ids, scheduled_at=now)
    await session.execute(
        """update matins.ledger set state = 'succeeded', finished_at = clock_timestamp()
            where occurrence_id = $1 and position < 20""",
        running.id,
    )
    await record_claims(session)
    await _tell(session, failed.id, Identity(JOB, before))
    await session.execute(
        "update matins.job set paused_at = $1, paused_by = 'ann', pause_reason = $2 where name = 'job-3'",
        now,
        HOSTILE[1],
    )
    await session.execute(
        "update matins.occurrence set state = 'missed', reason = 'later than catch_up_within', total = null, "
        "report = null, claimed_by = null, claimed_at = null, opened_at = null, sealed_at = null, closed_at = null, "
        "succeeded = null, failed = null, dead = null, cancelled = null where job = 'job-2' and scheduled_at = $1",
        now - timedelta(hours=3),
    )
    return str(Identity(JOB, before))


async def _fail(session: Session, occurrence_id: int, scheduled_at: datetime) -> None:
    """Close an occurrence with accounts in every state, and a report."""
    for place, text in enumerate(HOSTILE):
        await session.execute(
            """update matins.ledger
                  set state = 'failed', finished_at = clock_timestamp(), attempts = 3, error_class = $3, error = $4
                where occurrence_id = $1 and position % 9 = $2""",
            occurrence_id,
            place,
            f"class-{place} {text[:40]}".replace("\n", " "),
            text if place else LONG,
        )
    await session.execute(
        """update matins.ledger set state = 'succeeded', finished_at = clock_timestamp()
            where occurrence_id = $1 and state = 'pending'""",
        occurrence_id,
    )
    await session.execute(
        "update matins.ledger set state = 'dead' where occurrence_id = $1 and state = 'failed' and position % 18 = 1",
        occurrence_id,
    )
    counted: Any = await session.fetchrow(
        """select count(*) as total, count(*) filter (where state = 'succeeded') as succeeded,
                  count(*) filter (where state = 'failed') as failed, count(*) filter (where state = 'dead') as dead
             from matins.ledger where occurrence_id = $1""",
        occurrence_id,
    )
    classes = [
        {
            "error_class": f"class-{place} {text[:40]}",
            "state": "failed",
            "accounts": 7,
            "examples": ["a00001", text[:60]],
            "message": text[:900],
        }
        for place, text in enumerate(HOSTILE)
    ]
    report = {
        "retries": 12,
        "nothing_to_do": 3,
        "untouched_examples": [],
        "durations": {"median": 0.02, "p95": 0.2, "p99": 0.4, "longest": 1.5},
        "error_classes": classes,
        "generations": [],
    }
    await session.execute(
        """update matins.occurrence set state = 'partial', closed_at = opened_at + interval '7 minutes', report = $2,
               total = $3, succeeded = $4, failed = $5, dead = $6, cancelled = 0 where id = $1""",
        occurrence_id,
        report,
        counted["total"],
        counted["succeeded"],
        counted["failed"],
        counted["dead"],
    )


async def _tell(session: Session, occurrence_id: int, identity: Identity) -> None:
    """Open alerts, and write what people did."""
    await open_alert(
        session, "partial", str(identity), occurrence_id=occurrence_id, told=f"it is partial: {HOSTILE[1]}"
    )
    await open_alert(session, "not_claimed", f"job-1:{identity.scheduled_at:%Y-%m-%dT%H:%MZ}", told=LONG[:5000])
    await open_alert(session, "job_vanished", "job-4", told=HOSTILE[7])
    for text in HOSTILE:
        await session.execute(
            """insert into matins.audit (kind, job, occurrence_id, instance, actor, actor_kind, reason, detail)
               values ('rerun', $1, $2, 'i-1', $3, 'operator', $4, $5)""",
            JOB,
            occurrence_id,
            text[:100].replace("\n", " "),
            text[:500],
            {"before": {"state": text[:200]}, "after": {"state": "running"}},
        )


async def make_thousand(session: Session, jobs: int = 1000, hours: int = 100) -> None:
    """Record hourly jobs with a past in which some occurrences ended badly or never ran."""
    await enter_environment(session, "test", create=True)
    now = await database_now(session)
    await make_history(session, jobs=jobs, hours_ago=hours, hours_ahead=49, now=now, zones=tzdata_version())
    await session.execute(
        """update matins.occurrence
              set total = 4000, succeeded = case when id % 37 = 0 then 3990 else 4000 end,
                  failed = case when id % 37 = 0 then 10 else 0 end,
                  state = case when id % 37 = 0 then 'partial' else state end,
                  closed_at = opened_at + (id % 9 + 1) * interval '1 minute' where state = 'succeeded'"""
    )
    await session.execute("analyze")
