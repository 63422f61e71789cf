"""The questions about the fleet and its jobs."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final

import anyio.to_thread

from shared import clock
from shared.bounds import months_later
from shared.declaration import FaultyDeclaration
from shared.errors import DeclarationError
from shared.terminal import Refused, given
from shared.timing import Timing
from trigger.attempts import job_attempts
from trigger.console.api.fields import component, many
from trigger.console.api.parameters import in_path, instant, whole
from trigger.console.api.route import Question, Read
from trigger.console.asking import Unanswerable
from trigger.console.broker_look import LOOK_SECONDS
from trigger.console.broker_view import QUEUES, read_queues
from trigger.console.keeping import Unseen
from trigger.console.place import GLANCE_SECONDS, STALE_SECONDS
from trigger.console.status_look import status_kept
from trigger.preview import PreviewRow, preview
from trigger.stats import read_stats
from trigger.status import Status, read_job, read_jobs

# As far as `preview` looks, and as many instants as one answer holds.
FARTHEST: Final = timedelta(days=60 * 366)
MOST_SHOWN: Final = 1000
SHOWN: Final = 10
JOB: Final = in_path("job", "The job's name.", "invoice-run", {"minLength": 1, "maxLength": 63, "format": "job"})
_STATUS: Final = ("jobs", "running", "instances", "queues", "unmended", "alerts", "maintenance", "problems", "unseen")
_BEFORE: Final = timedelta(microseconds=1)


async def status(question: Question) -> Any:
    """Give what `status --json` does, as it was read last."""
    kept = await status_kept(question.place)
    found: Status = kept.value
    return kept.of({"well": found.well, **{name: getattr(found, name) for name in _STATUS}})


async def jobs(question: Question) -> Any:
    """Give every job as `status` has it, with its declaration."""
    place = question.place

    async def read() -> Any:
        async with place.database.session() as session:
            return [_recorded(*one) for one in await read_jobs(session)]

    return await place.keeping.get("api jobs", read, fresh_for=GLANCE_SECONDS, stale_for=STALE_SECONDS)


async def one_job(question: Question) -> Any:
    """Give one of them."""
    async with question.view() as session:
        return _recorded(*await read_job(session, question["job"]))


async def stats(question: Question) -> Any:
    """Give what `stats --json` does."""
    async with question.view() as session:
        return (await read_stats(session, question["job"], question["last"])).as_json()


async def attempts(question: Question) -> Any:
    """Give what `attempts JOB --json` does."""
    since = clock.utc_now() - timedelta(days=question["days"])
    async with question.view() as session:
        return await job_attempts(session, question["job"], since)


async def previewed(question: Question) -> Any:
    """Give what `preview --json` does, for the schedule that is recorded, and without the other jobs of an instant."""
    since, until, months = question["from"], question["until"], question["months"]
    now = clock.utc_now()
    for name, far in (("from", since), ("until", until)):
        if far is not None and abs(far - now) > FARTHEST:
            raise Unanswerable(f"{name}: lies more than 60 years from now")
    after = (since or now) - _BEFORE
    last = _last(after, until, months)
    most = question["count"] or (MOST_SHOWN if until or months else SHOWN)
    async with question.view() as session:
        _, row = await read_job(session, question["job"])
    timing = _timing(question["job"], row["definition"])
    if last <= after:
        return []
    rows: list[PreviewRow] = await anyio.to_thread.run_sync(preview, timing, after, last, most)
    return [asdict(one) for one in rows]


async def queues(question: Question) -> Any:
    """Give what `queues --json` does, for the jobs that are recorded. Raises Unseen without a broker."""
    place = question.place
    if not given(place.settings, "broker_url"):
        raise Unseen("the queues were not seen: MATINS_BROKER_URL is not set")
    kept = await place.keeping.get(QUEUES, lambda: read_queues(place), fresh_for=LOOK_SECONDS, stale_for=STALE_SECONDS)
    return kept.of([asdict(one) for one in kept.value])


def _recorded(job: dict[str, Any], row: Any) -> dict[str, Any]:
    return {**job, "definition": row["definition"]}


def _timing(name: str, definition: dict[str, Any]) -> Timing:
    try:
        return Timing.from_definition(name, definition)
    except (DeclarationError, FaultyDeclaration, TypeError, ValueError):
        raise Refused(f"{name}: a later release has recorded its schedule in a way that this one cannot read") from None


def _last(after: datetime, until: datetime | None, months: int | None) -> datetime:
    """Give the earliest of what says how far."""
    ends = [after + FARTHEST]
    ends += [until] if until else []
    ends += [months_later(after + _BEFORE, months)] if months else []
    return min(ends)


READS: Final = (
    Read("/status", "status", "Whether all is well.", component("Status"), status, kept=True),
    Read("/jobs", "jobs", "Every job, by name.", many(component("RecordedJob")), jobs, kept=True),
    Read("/jobs/{job}", "job", "One job.", component("RecordedJob"), one_job, (JOB,)),
    Read(
        "/jobs/{job}/stats",
        "stats",
        "What a job's last runs took against the time to the next, the trend, and when the two meet.",
        component("Stats"),
        stats,
        (JOB, whole("last", "How many runs.", 1, 500, 30)),
    ),
    Read(
        "/jobs/{job}/preview",
        "preview",
        "When a job is due, by its recorded schedule, each clock change explained. Other jobs of an instant are not "
        "named here.",
        many(component("Previewed")),
        previewed,
        (
            JOB,
            instant("from", "The earliest, included; by default now. At most 60 years away."),
            instant("until", "The latest, included. At most 60 years away."),
            whole("months", "So many months from the earliest on.", 1, 600),
            whole("count", "At most; by default 10, or 1000 with `until` or `months`.", 1, MOST_SHOWN),
        ),
    ),
    Read(
        "/jobs/{job}/attempts",
        "job_attempts",
        "Attempts and wins on what was due of a job, by process.",
        component("JobAttempts"),
        attempts,
        (JOB, whole("days", "How far back to look.", 1, 366, 7)),
    ),
    Read(
        "/queues",
        "queues",
        "The queues that migrate has made; 503 with a reason where the broker cannot be asked.",
        many(component("Queue")),
        queues,
        kept=True,
    ),
)
