"""Whether all is well, on one screen: jobs, what runs, live processes and queues."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from schemas.occurrence import Identity, format_instant
from shared.postgres import Row, Session
from shared.settings import Settings
from shared.sql_files import statement
from shared.terminal import given

STATUS_JOBS = statement("trigger", "status_jobs")
STATUS_UNMENDED = statement("trigger", "status_unmended")
STATUS_RUNNING = statement("trigger", "status_running")
LIVE_INSTANCES = statement("trigger", "live_instances")

DAYS = 7
MOST_UNMENDED = 20
_DOES = {"trigger": "is planned, claimed or published", "worker": "is executed"}
# A command for people does not wait as long as a service does.
LONGEST_LOOK = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Status:
    """What was found. `problems` is what is not well, `unseen` what could not be looked at, a line each.

    `unmended` are the occurrences that ended badly, at most MOST_UNMENDED; `queues` is None when they were not seen.
    """

    jobs: list[dict[str, Any]]
    running: list[dict[str, Any]]
    instances: list[dict[str, Any]]
    queues: list[dict[str, Any]] | None
    unmended: list[dict[str, Any]]
    problems: list[str]
    unseen: list[str]

    @property
    def well(self) -> bool:
        """Everything was seen, and nothing of it is a problem."""
        return not self.problems and not self.unseen


async def read_status(session: Session, settings: Settings, days: int = DAYS) -> Status:
    """Read everything in one view of the database, and ask the broker for the queues.

    What ended badly in the last `days` is a problem until it is mended; with 0, each job's last occurrence alone.
    """
    async with session.transaction(isolation="repeatable_read", readonly=True):
        jobs = [_job(row) for row in await session.fetch(STATUS_JOBS)]
        running = [_running(row) for row in await session.fetch(STATUS_RUNNING)]
        instances = [_instance(row) for row in await session.fetch(LIVE_INSTANCES)]
        unmended = await session.fetch(STATUS_UNMENDED, days, MOST_UNMENDED)
    queues, missing, unseen = await _queues(settings, {job["queue"] for job in jobs if job["retired_at"] is None})
    kinds = {one["kind"] for one in instances}
    problems = [f"no {kind} is live: nothing {does}" for kind, does in _DOES.items() if kind not in kinds]
    problems += missing
    problems += [_late(job) for job in jobs if job["late_since"]]
    problems += [f"{one['occurrence']} is not finished in time" for one in running if one["overdue"]]
    problems += [f"{_written(row)} {_state(row['state'])}: {_why(row)}" for row in unmended]
    if unmended and (more := unmended[0]["found"] - len(unmended)):
        problems.append(f"and {more} more: `occurrences --state failed --state partial --state missed`")
    return Status(jobs, running, instances, queues, [_unmended(row) for row in unmended], problems, unseen)


def _job(row: Row) -> dict[str, Any]:
    """Judge one job: its last occurrence, the next, and what is late."""
    last = None
    if row["last_state"] is not None:
        names = ("state", "reason", "generation", "scheduled_at", "opened_at", "closed_at", "total", "succeeded")
        last = {name: row[f"last_{name}"] for name in (*names, "failed", "dead", "cancelled")}
        last["occurrence"] = str(Identity(row["name"], row["last_scheduled_at"], row["last_variant"]))
        last["unsuccessful"] = None if last["total"] is None else last["total"] - last["succeeded"]
    stopped = row["retired_at"] is not None or row["paused_at"] is not None
    return {
        "job": row["name"],
        "revision": row["revision"],
        "schedule": row["definition"]["schedule"],
        "queue": row["definition"]["queue"],
        "paused_at": row["paused_at"],
        "retired_at": row["retired_at"],
        "last": last,
        "next_at": row["next_scheduled_at"],
        "late_since": None if stopped else row["late_scheduled_at"],
    }


def _late(job: dict[str, Any]) -> str:
    return f"{job['job']}:{format_instant(job['late_since'])} is late: nobody has claimed it"


def _unmended(row: Row) -> dict[str, Any]:
    told = {name: row[name] for name in ("state", "reason", "total", "succeeded", "scheduled_at")}
    return {"occurrence": _written(row), **told, "why": _why(row)}


def _why(row: Row) -> str:
    if row["total"]:
        return f"{row['total'] - row['succeeded']} of {row['total']} accounts did not succeed"
    return row["reason"] or "no account was read"


def _state(state: str) -> str:
    """Say how an occurrence ended, behind its name."""
    return {"partial": "is partial", "missed": "was missed"}.get(state, state)


def _written(row: Row) -> str:
    return str(Identity(row["job"], row["scheduled_at"], row["variant"]))


def _running(row: Row) -> dict[str, Any]:
    told = {name: row[name] for name in ("state", "ending", "generation", "opened_at", "finish_by", "sealed")}
    return {
        "occurrence": _written(row),
        **told,
        "accounts": row["accounts_read"],
        "done": row["accounts_read"] - row["open"],
        "unsuccessful": row["unsuccessful"],
        "overdue": bool(row["overdue"]),
    }


def _instance(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ("id", "kind", "host", "version", "region", "started_at", "silent_seconds")}


async def _queues(settings: Settings, keys: set[str]) -> tuple[list[dict[str, Any]] | None, list[str], list[str]]:
    """Look into the work queues and the dead letters; then say what is missing, and why nothing could be seen."""
    from shared.broker import BrokerUnavailable  # noqa: PLC0415 - a command loads only what it uses
    from shared.broker_inspection import inspect_broker  # noqa: PLC0415 - a command loads only what it uses

    url = given(settings, "broker_url")
    if not url:
        return None, [], ["the queues were not seen: MATINS_BROKER_URL is not set"]
    names = [f"{settings.prefix}.work.{key}" for key in sorted(keys)]
    names += [f"{settings.prefix}.dead.parked", f"{settings.prefix}.dead.accounted"]
    seconds = min(settings.broker_timeout, LONGEST_LOOK).total_seconds()
    try:
        facts = await inspect_broker(url, names, timeout=seconds)
    except BrokerUnavailable as error:
        return None, [], [f"the queues were not seen: {error}"]
    found = [
        {"queue": name, "messages": depth.messages, "consumers": depth.consumers}
        for name, depth in facts.queues.items()
        if depth is not None
    ]
    missing = [name for name, depth in facts.queues.items() if depth is None]
    return found, [f"missing on the broker, run migrate: {', '.join(missing)}"] if missing else [], []
