"""A check-in of work that runs elsewhere, decided in one transaction behind the job row's lock.

It moves the row that was written ahead, as a claim and a close do: `claimed` from its start to its end, then
`succeeded` or `failed`, with no accounts. A pause refuses what would start; a hold does not, since nothing runs here.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from schemas.audit import ActorKind
from schemas.occurrence import Identity
from schemas.report import Counts, Generation, Report
from shared.logs import logger
from shared.masking import plain
from shared.postgres import Row, Session, database_now, transaction
from shared.sql_files import statement
from shared.telemetry import metrics
from trigger.check_in_rules import Event, Ruling, over, ruled
from trigger.operate import SOON, kept_report
from trigger.outside_call import ANSWER_CALL, Answered, Declined, Delivery, Refusal, earlier_answer
from trigger.plan import LOCK_JOB

MEANT_OCCURRENCE = statement("trigger", "meant_occurrence")
CHECKED_IN_OCCURRENCE = statement("trigger", "checked_in_occurrence")
START_ELSEWHERE = statement("trigger", "start_elsewhere")
END_ELSEWHERE = statement("trigger", "end_elsewhere")
CLOSE_SILENT = statement("trigger", "close_silent")
AUDIT_CHECK_IN = statement("trigger", "audit_check_in")

# A sender whose clock is no more ahead than this is taken to mean what is due next.
AHEAD = timedelta(seconds=10)
LONGEST_MESSAGE = 500
_STATES: dict[Event, str] = {"success": "succeeded", "fail": "failed"}
_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class CheckIn:
    """What is reported of which job's occurrence, by whom; `proof`: how they proved it, `instance`: who writes it down.

    Without an instant it is the one that `run` has, or that started last, or the latest that is due. `message` is for a
    failure.
    """

    job: str
    event: Event
    caller: str
    proof: str
    instance: str
    scheduled_at: datetime | None = None
    run: str | None = None
    message: str = ""
    delivery: Delivery | None = None
    actor_kind: ActorKind = "caller"


@dataclass(frozen=True, slots=True)
class _Ended:
    """An occurrence that this check-in has ended, for the log and the metrics; `ran`: its start was reported too."""

    identity: Identity
    state: str
    duration: timedelta
    ran: bool


class _TooLate(Refusal):
    """The occurrence is over, or another run has it: nothing of it changes, and that somebody reported it is kept."""

    def __init__(self, declined: Declined, row: Row) -> None:
        super().__init__(declined)
        self.row = row


async def check_in(session: Session, asked: CheckIn, *, now: datetime | None = None) -> Answered | Declined:
    """Record a check-in. What is declined is not written anywhere; that it came too late is in the audit trail."""
    try:
        async with transaction(session):
            if asked.delivery is not None:
                earlier = await earlier_answer(session, asked.caller, asked.delivery, asked.job, now)
                if earlier is not None:
                    return earlier
            answered, ended = await _recorded(session, asked, now)
            if asked.delivery is not None:
                await session.execute(ANSWER_CALL, asked.caller, asked.delivery.webhook_id, answered.id)
    except _TooLate as late:
        await _audit(session, asked, late.row, late.row["state"], {"refused": late.declined.outcome})
        return late.declined
    except Refusal as refusal:
        return refusal.declined
    if ended is not None:
        _tell(ended)
    return answered


async def close_silent(session: Session, instance: str, *, now: datetime | None = None) -> int:
    """Close what has started elsewhere and was not heard of in time; give how many."""
    report = msgspec.to_builtins(Report(counts=Counts()))
    rows = await session.fetch(CLOSE_SILENT, instance, report, now)
    for row in rows:
        duration = row["closed_at"] - row["opened_at"]
        _tell(_Ended(Identity(row["job"], row["scheduled_at"]), "failed", duration, ran=False))
    return len(rows)


async def _recorded(session: Session, asked: CheckIn, now: datetime | None) -> tuple[Answered, _Ended | None]:
    """Do what the check-in asks for. Raises Refusal where nothing is written."""
    job: Any = await session.fetchrow(LOCK_JOB, asked.job)
    if job is None:
        raise Refusal(Declined("unknown", "no such job"))
    row = await _found(session, asked, job, now)
    _refuse(row, job, now or await database_now(session))
    identity = Identity(asked.job, row["scheduled_at"])
    ruling = _ruled(asked, row)
    if ruling is Ruling.KNOWN:
        return Answered(identity, row["id"], row["state"], won=False), None
    if ruling is Ruling.OVER:
        raise _TooLate(Declined("over", f"{identity} is over: it was {over(row)}"), row)
    if ruling is Ruling.ANOTHER_RUN:
        raise _TooLate(Declined("another_run", f"{identity} is run by {row['run_id']}, which started later"), row)
    epoch, state, ended = row["epoch"], "claimed", None
    if ruling is not Ruling.END:
        epoch = await _start(session, asked, job, row, now)
    if asked.event != "start":
        state = _STATES[asked.event]
        ended = await _end(session, asked, row, epoch, ran=ruling is Ruling.END, now=now)
    await _audit(session, asked, row, state, {"from": row["run_id"]} if ruling is Ruling.TAKE_OVER else {})
    return Answered(identity, row["id"], state, won=True), ended


def _ruled(asked: CheckIn, row: Row) -> Ruling:
    if row["ending"] is not None and row["closed_at"] is None:
        return Ruling.OVER
    has_it, before = row["run_id"], row["started_before"]
    return ruled(asked.event, asked.run, row["state"], has_it, started_before=before)


async def _found(session: Session, asked: CheckIn, job: Any, now: datetime | None) -> Row:
    """Read the occurrence that is meant. Raises Refusal when there is none."""
    at, is_start = asked.scheduled_at, asked.event == "start"
    if at is None:
        at = await session.fetchval(
            MEANT_OCCURRENCE, asked.job, asked.run, is_start, AHEAD, 2 * _heard_within(job), now
        )
    row = None if at is None else await session.fetchrow(CHECKED_IN_OCCURRENCE, asked.job, at, asked.run)
    if row is None and asked.scheduled_at is None:
        raise Refusal(Declined("not_due", "nothing of the job is due yet"))
    if row is None or row["reason"] in {"superseded", "calendar"}:
        raise Refusal(Declined("off_schedule", "the instant is not on the job's schedule"))
    return row


def _refuse(row: Row, job: Any, present: datetime) -> None:
    """Refuse what cannot be checked in, or not now. Raises Refusal."""
    if row["coordination"] != "elsewhere":
        raise Refusal(Declined("runs_here", "the job runs here: it does not check in"))
    has_started = row["state"] == "claimed"
    if job["retired_at"] is not None and not has_started:
        raise Refusal(Declined("unknown", "no such job"))
    early = row["due_at"] - present
    if early > SOON:
        raise Refusal(Declined("not_due", "the instant is still to come"))
    if early > AHEAD:
        raise Refusal(Declined("early", "the instant is not due yet", early.total_seconds()))
    if job["paused_at"] is not None and (row["state"] == "expected" or row["reason"] == "paused"):
        raise Refusal(Declined("paused", "the job is paused: nothing of it is waited for"))
    if row["state"] == "expected" and -early > _heard_within(job):
        raise Refusal(Declined("too_old", "the instant is older than the job's heard_within"))


async def _start(session: Session, asked: CheckIn, job: Any, row: Row, now: datetime | None) -> int:
    """Open the occurrence for this run, and give its epoch. Raises Refusal when it was closed meanwhile."""
    earlier = row["report"] if row["closed_at"] is None else kept_report(row)
    finish_within = timedelta(seconds=job["definition"]["decisions"]["finish_within"])
    known = f"checked in, {asked.proof}"
    who = (asked.run, finish_within, asked.instance, asked.caller, known)
    started: Any = await session.fetchrow(START_ELSEWHERE, row["id"], row["epoch"], *who, earlier, now)
    if started is None:
        raise _moved()
    if row["state"] == "expected":
        metrics.lag.record((started["claimed_at"] - started["due_at"]).total_seconds(), job=asked.job)
    return int(started["epoch"])


async def _end(session: Session, asked: CheckIn, row: Row, epoch: int, *, ran: bool, now: datetime | None) -> _Ended:
    """Close the occurrence as reported. Raises Refusal when it was closed meanwhile."""
    state, reason = _STATES[asked.event], None
    if asked.event == "fail":
        message = plain(asked.message.strip(), LONGEST_MESSAGE).replace("\n", " ")
        reason = f"reported by {asked.caller}" + (f": {message}" if message else "")
    kept = (row["report"] if row["closed_at"] is None else kept_report(row)) or {}
    report = Report(counts=Counts(), generations=msgspec.convert(kept.get("generations", []), tuple[Generation, ...]))
    written: Any = await session.fetchrow(
        END_ELSEWHERE, row["id"], epoch, state, reason, asked.run, msgspec.to_builtins(report), now
    )
    if written is None:
        raise _moved()
    duration = written["closed_at"] - written["opened_at"]
    return _Ended(Identity(asked.job, row["scheduled_at"]), state, duration, ran)


async def _audit(session: Session, asked: CheckIn, row: Row, state: str, more: dict[str, Any]) -> None:
    """Write who reported what; what changed nothing is written once."""
    detail = {"event": asked.event, "before": row["state"], "after": state, **more}
    if asked.run is not None:
        detail["run"] = asked.run
    once = "refused" in more
    who = (asked.instance, asked.caller, asked.actor_kind, asked.proof)
    await session.execute(AUDIT_CHECK_IN, asked.job, row["id"], *who, detail, once)


def _moved() -> Refusal:
    """It was closed between the look and the write, as by an operator's cancel: the next look sees how."""
    return Refusal(Declined("moved", "the occurrence has just changed", 1))


def _heard_within(job: Any) -> timedelta:
    return timedelta(seconds=job["definition"]["decisions"]["catch_up_within"])


def _tell(ended: _Ended) -> None:
    seconds = ended.duration.total_seconds()
    _log.info("occurrence closed", occurrence=str(ended.identity), state=ended.state, seconds=round(seconds, 3))
    metrics.occurrences.add(1, job=ended.identity.job, outcome=ended.state)
    if ended.ran:
        metrics.occurrence_duration.record(seconds, job=ended.identity.job, outcome=ended.state)
