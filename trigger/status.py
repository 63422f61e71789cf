"""Whether all is well, on one screen: jobs, what runs, live processes and queues."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from schemas.occurrence import Identity, format_instant
from shared.declaration import FaultyDeclaration
from shared.differences import read_differences
from shared.errors import DeclarationError
from shared.fleet import read_topology
from shared.postgres import Row, Session, database_now
from shared.restore import READ_HOLD
from shared.restore import told as told_hold
from shared.schedule_definition import schedule_of
from shared.schedule_protocol import Schedule
from shared.settings import Settings
from shared.sql_files import statement
from shared.topology_versions import work_queues_of
from trigger.alerts import list_alerts
from trigger.definitions import as_values
from trigger.maintenances import list_maintenance
from trigger.notifications import channel_problems
from trigger.queue_look import LookAtQueues, ask_for_queues
from trigger.reach import require_job
from trigger.standing import standing_of, told_pause, told_retirement
from trigger.status_alerts import Problem, judged

STATUS_JOBS = statement("trigger", "status_jobs")
STATUS_UNMENDED = statement("trigger", "status_unmended")
STATUS_RUNNING = statement("trigger", "status_running")
LIVE_INSTANCES = statement("trigger", "live_instances")
ABSENT_WORKERS = statement("trigger", "absent_workers")
LEADERS = statement("trigger", "leaders")

DAYS = 7
MOST_UNMENDED = 20
# Within it a trigger that has just started registers its jobs.
SETTLING = timedelta(seconds=10)
_DOES = {"trigger": "is planned, claimed or published", "worker": "is executed"}


@dataclass(frozen=True, slots=True)
class Status:
    """What was found. `problems` is what is not well, `unseen` what could not be looked at, a line each.

    `unmended` are the occurrences that ended badly, at most MOST_UNMENDED; `differences` the jobs of which live
    processes hold several definitions; `alerts` those that are open, `maintenance` what is planned and in force;
    `queues` is None when they were not seen.
    """

    jobs: list[dict[str, Any]]
    running: list[dict[str, Any]]
    instances: list[dict[str, Any]]
    queues: list[dict[str, Any]] | None
    unmended: list[dict[str, Any]]
    differences: list[dict[str, Any]]
    alerts: list[dict[str, Any]]
    maintenance: list[dict[str, Any]]
    problems: list[str]
    unseen: list[str]

    @property
    def well(self) -> bool:
        """Everything was seen, and nothing of it is a problem."""
        return not self.problems and not self.unseen


async def read_status(
    session: Session, settings: Settings, days: int = DAYS, *, look_at_queues: LookAtQueues | None = None
) -> Status:
    """Read everything in one view of the database, and ask the broker for the queues, or whoever looks at them for it.

    What ended badly in the last `days` is a problem until it is mended, or somebody acknowledges it; with 0, each job's
    last occurrence alone. An open alert is a problem until it is acknowledged, silenced or planned.
    """
    async with session.transaction(isolation="repeatable_read", readonly=True):
        jobs = [job for job, _ in await read_jobs(session)]
        running = [_running(row) for row in await session.fetch(STATUS_RUNNING)]
        live = await session.fetch(LIVE_INSTANCES)
        instances = [_instance(row) for row in live]
        unmended = await session.fetch(STATUS_UNMENDED, days, MOST_UNMENDED)
        differences = await read_differences(session)
        recorded = await read_topology(session)
        absent = [line for job in jobs if (line := await _absent(session, job))]
        held = told_hold(await session.fetchrow(READ_HOLD))
        alerts, _ = await list_alerts(session)
        planned = [one for one in await list_maintenance(session) if one["state"] == "in force"]
        untold = await channel_problems(session, max(days, 1))
    keys = {job["queue"] for job in jobs if job["retired_at"] is None and job["queue"] is not None}
    look = look_at_queues or ask_for_queues
    queues, missing, unseen = await look(settings, work_queues_of(settings.prefix, keys, recorded))
    lines = [*nobody(row["kind"] for row in live), *([held] if held else []), *missing, *untold, *absent]
    lines += [*_run_by_none(jobs, live), *_leaderless(jobs, live), *_planned_by_none(jobs, live)]
    lines += _without_code(running, live)
    problems = [Problem(line) for line in lines]
    problems += [_late(job) for job in jobs if job["late_since"]]
    problems += [Problem(str(one), f"config_mismatch:{one.job}") for one in differences]
    problems += [_overdue(one) for one in running if one["overdue"]] + [_badly(row) for row in unmended]
    told = judged(problems, alerts)
    if unmended and (more := unmended[0]["found"] - len(unmended)):
        told.append(f"and {more} more: `occurrences --state failed --state partial --state missed`")
    ended_badly, differing = [_unmended(row) for row in unmended], [as_values(one) for one in differences]
    return Status(jobs, running, instances, queues, ended_badly, differing, alerts, planned, told, unseen)


async def read_jobs(session: Session) -> list[tuple[dict[str, Any], Row]]:
    """Judge every job, and give its row with each, by name."""
    leaders = {row["job"]: row for row in await session.fetch(LEADERS)}
    return [(_job(row, leaders.get(row["name"])), row) for row in await session.fetch(STATUS_JOBS, None)]


async def read_job(session: Session, name: str) -> tuple[dict[str, Any], Row]:
    """Judge one job as `status` does, and give its row. Raises Refused when there is no such job."""
    await require_job(session, name)
    row: Any = await session.fetchrow(STATUS_JOBS, name)
    leaders = [one for one in await session.fetch(LEADERS) if one["job"] == name]
    return _job(row, leaders[0] if leaders else None), row


def _job(row: Row, leader: Row | None) -> dict[str, Any]:
    """Judge one job: its last occurrence, the next, what is late, and who leads it."""
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
        "standing": _standing(row),
        "last": last,
        "next_at": None if stopped else _next(row),
        "late_since": None if stopped else row["late_scheduled_at"],
        "start_within": row["definition"]["decisions"]["start_within"],
        "coordination": row["definition"]["coordination"],
        "leader": None if leader is None else {name: leader[name] for name in ("instance", "epoch", "until")},
    }


def _readable(definition: dict[str, Any]) -> Schedule | None:
    """Give a recorded schedule; None for one that cannot be read, which nobody can plan: that is told."""
    try:
        return schedule_of(definition)
    except (DeclarationError, FaultyDeclaration):
        return None


def _next(row: Row) -> datetime | None:
    """Give the next instant: of a job that every worker runs for itself no row is written ahead."""
    definition = row["definition"]
    if definition["coordination"] == "every":
        schedule = _readable(definition["schedule"])
        return None if schedule is None else schedule.next_after(row["now"])
    instant: datetime | None = row["next_scheduled_at"]
    return instant


async def _absent(session: Session, job: dict[str, Any]) -> str | None:
    """Say which live workers have not run a job for themselves, once they are later than they may be."""
    if job["coordination"] != "every" or job["paused_at"] or job["retired_at"]:
        return None
    late = await database_now(session) - timedelta(seconds=job["start_within"])
    schedule = _readable(job["schedule"])
    due = None if schedule is None else schedule.previous_before(late)
    rows = [] if due is None else await session.fetch(ABSENT_WORKERS, job["job"], due)
    if due is None or not rows:
        return None
    named = ", ".join(row["id"][:8] for row in rows)
    return f"{job['job']}:{format_instant(due)} was not run by {len(rows)} live workers: {named}"


def _run_by_none(jobs: Sequence[dict[str, Any]], live: Sequence[Row]) -> list[str]:
    """Say which jobs no live worker may run for itself, and why: such a job has no rows that could be late."""
    told = []
    for job in jobs:
        own = job["coordination"] == "every" and not (job["paused_at"] or job["retired_at"])
        held = [row["jobs"].get(job["job"]) for row in live if row["kind"] == "worker" and job["job"] in row["jobs"]]
        if own and held and all(held):
            told.append(f"{job['job']} is run by none of {len(held)} live workers: {'; '.join(sorted(set(held)))}")
    return told


def _planned_by_none(jobs: Sequence[dict[str, Any]], live: Sequence[Row]) -> list[str]:
    """Say which jobs live triggers declare, and none can plan: what is known of them cannot be read, say."""
    triggers = [row for row in live if row["kind"] == "trigger"]
    settled = [row for row in triggers if row["seen_at"] - row["started_at"] > SETTLING]
    told = []
    for job in jobs:
        name = job["job"]
        declaring = [row["id"][:8] for row in settled if name in (row["definitions"] or {})]
        planned = any(row["jobs"].get(name) == job["revision"] for row in triggers)
        if declaring and not planned and job["retired_at"] is None:
            told.append(f"{name} is planned by none of the live triggers that declare it: {', '.join(declaring)}")
    return told


def nobody(kinds: Iterable[str]) -> list[str]:
    """Say of which kind no process lives, given those of the processes that do."""
    live = set(kinds)
    return [f"no {kind} is live: nothing {does}" for kind, does in _DOES.items() if kind not in live]


def _leaderless(jobs: Sequence[dict[str, Any]], live: Sequence[Row]) -> list[str]:
    """Say which jobs no trigger leads, while there are triggers."""
    led = [job for job in jobs if job["coordination"] == "leader" and not (job["leader"] or job["retired_at"])]
    return [f"{job['job']}: no trigger leads it" for job in led if any(row["kind"] == "trigger" for row in live)]


def _standing(row: Row) -> str | None:
    """Say who has paused or retired a job, and why."""
    if row["retired_at"] is not None:
        return f"retired {told_retirement(standing_of(row))}"
    return f"paused {told_pause(standing_of(row))}" if row["paused_at"] is not None else None


def _late(job: dict[str, Any]) -> Problem:
    name = f"{job['job']}:{format_instant(job['late_since'])}"
    missing = "it has not checked in" if job["coordination"] == "elsewhere" else "nobody has claimed it"
    return Problem(f"{name} is late: {missing}", f"not_claimed:{name}")


def _overdue(one: dict[str, Any]) -> Problem:
    return Problem(f"{one['occurrence']} is not finished in time", f"not_finished:{one['occurrence']}")


def _badly(row: Row) -> Problem:
    return Problem(f"{_written(row)} {_state(row['state'])}: {_why(row)}", f"{row['state']}:{_written(row)}")


def _without_code(running: Sequence[dict[str, Any]], live: Sequence[Row]) -> list[str]:
    """Say which occurrences have accounts that wait for a worker that can run their job."""
    workers = [row["jobs"] for row in live if row["kind"] == "worker"]
    runnable = {job for jobs in workers for job, problem in jobs.items() if problem is None}
    waiting = [one for one in running if workers and one["job"] not in runnable and one["done"] < one["accounts"]]
    none = f"none of {len(workers)} live workers can run its job"
    return [f"{one['occurrence']}: {one['accounts'] - one['done']} accounts wait: {none}" for one in waiting]


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
        "job": row["job"],
        **told,
        "accounts": row["accounts_read"],
        "done": row["accounts_read"] - row["open"],
        "unsuccessful": row["unsuccessful"],
        "overdue": bool(row["overdue"]),
    }


def _instance(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ("id", "kind", "host", "version", "region", "started_at", "silent_seconds")}
