"""Whether all is well, on one screen: jobs, what runs, live processes and queues."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from schemas.occurrence import Identity, format_instant
from shared.broker import BrokerUnavailable
from shared.broker_inspection import inspect_broker
from shared.postgres import Row, Session
from shared.settings import Settings
from shared.sql_files import statement
from shared.terminal import given

STATUS_JOBS = statement("trigger", "status_jobs")
STATUS_RUNNING = statement("trigger", "status_running")
LIVE_INSTANCES = statement("trigger", "live_instances")

BAD = ("partial", "failed", "missed")
# A command for people does not wait as long as a service does.
LONGEST_LOOK = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Status:
    """What was found. `problems` is what is not well, a line each; `notes` is what may explain it."""

    jobs: list[dict[str, Any]]
    running: list[dict[str, Any]]
    instances: list[dict[str, Any]]
    queues: list[dict[str, Any]] | None
    problems: list[str]
    notes: list[str]

    @property
    def well(self) -> bool:
        """Nothing failed, partial, missed, late, or not finished in time."""
        return not self.problems


async def read_status(session: Session, settings: Settings) -> Status:
    """Read everything in one view of the database; the broker is asked too if it is set and answers."""
    async with session.transaction(isolation="repeatable_read", readonly=True):
        jobs = [_job(row) for row in await session.fetch(STATUS_JOBS)]
        running = [_running(row) for row in await session.fetch(STATUS_RUNNING)]
        instances = [_instance(row) for row in await session.fetch(LIVE_INSTANCES)]
    notes = [
        f"no {kind} is live" for kind in ("trigger", "worker") if not any(one["kind"] == kind for one in instances)
    ]
    queues, told = await _queues(settings, {job["queue"] for job in jobs if job["retired_at"] is None})
    problems = [problem for job in jobs for problem in job["problems"]]
    problems += [f"{one['occurrence']} is not finished in time" for one in running if one["overdue"]]
    return Status(jobs, running, instances, queues, problems, notes + told)


def _job(row: Row) -> dict[str, Any]:
    """Judge one job: its last occurrence, the next, and what is late."""
    last = None
    if row["last_state"] is not None:
        names = ("state", "reason", "generation", "scheduled_at", "opened_at", "closed_at", "total", "succeeded")
        last = {name: row[f"last_{name}"] for name in (*names, "failed", "dead", "cancelled")}
        last["occurrence"] = str(Identity(row["name"], row["last_scheduled_at"], row["last_variant"]))
    stopped = row["retired_at"] is not None or row["paused_at"] is not None
    problems = []
    if last and last["state"] in BAD and row["retired_at"] is None:
        problems.append(f"{last['occurrence']} was {last['state']}: {_why(last)}")
    if row["late_scheduled_at"] is not None and not stopped:
        problems.append(f"{row['name']}:{format_instant(row['late_scheduled_at'])} is late: nobody has claimed it")
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
        "problems": problems,
    }


def _why(last: Mapping[str, Any]) -> str:
    if last["total"]:
        bad = last["failed"] + last["dead"] + last["cancelled"]
        return f"{bad} of {last['total']} accounts did not succeed"
    return last["reason"] or "no account was read"


def _running(row: Row) -> dict[str, Any]:
    told = {name: row[name] for name in ("state", "ending", "generation", "opened_at", "finish_by", "sealed")}
    return {
        "occurrence": str(Identity(row["job"], row["scheduled_at"], row["variant"])),
        **told,
        "accounts": row["accounts_read"],
        "done": row["accounts_read"] - row["open"],
        "unsuccessful": row["unsuccessful"],
        "overdue": bool(row["overdue"]),
    }


def _instance(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ("id", "kind", "host", "version", "region", "started_at", "silent_seconds")}


async def _queues(settings: Settings, keys: set[str]) -> tuple[list[dict[str, Any]] | None, list[str]]:
    """Look into the work queues and the dead letters; None, and why, when the broker cannot be asked."""
    url = given(settings, "broker_url")
    if not url:
        return None, ["the queues were not looked at: MATINS_BROKER_URL is not set"]
    names = [f"{settings.prefix}.work.{key}" for key in sorted(keys)]
    names += [f"{settings.prefix}.dead.parked", f"{settings.prefix}.dead.accounted"]
    seconds = min(settings.broker_timeout, LONGEST_LOOK).total_seconds()
    try:
        facts = await inspect_broker(url, names, timeout=seconds)
    except BrokerUnavailable as error:
        return None, [f"the queues were not looked at: {error}"]
    found = [
        {"queue": name, "messages": depth.messages, "consumers": depth.consumers}
        for name, depth in facts.queues.items()
        if depth is not None
    ]
    missing = [name for name, depth in facts.queues.items() if depth is None]
    return found, [f"missing on the broker, run migrate: {', '.join(missing)}"] if missing else []
