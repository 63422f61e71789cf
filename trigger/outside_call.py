"""A call from outside, decided in one transaction: which occurrence it means, whether it may, and who has claimed it.

The claim is the schedule's own, so a caller can only have claimed what is on the plan and due. A signed call that comes
again, to whichever process, waits for the first delivery and is answered with the same occurrence; what is refused
leaves nothing behind.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from schemas.occurrence import Identity
from shared.postgres import Session, database_now, transaction
from shared.sql_files import statement
from trigger.claim import claim_one
from trigger.claim_outcome import Claimant, Ended, Foreign, Held, NotDue, OnHold, Overlapped, Paused, Pruned, Stale, Won
from trigger.operate import AUDIT_CALL, LATEST_DUE, SOON
from trigger.plan import LOCK_JOB
from trigger.reach import FIND_OCCURRENCE
from trigger.sweep import cancel_ended

REMEMBER_CALL = statement("trigger", "remember_call")
REMEMBERED_CALL = statement("trigger", "remembered_call")
ANSWER_CALL = statement("trigger", "answer_call")
FORGET_CALLS = statement("trigger", "forget_calls")

# How far a signed call's time may be from the database's.
TOLERANCE = timedelta(minutes=5)
# More than twice that: a call that comes early counts until its time and the tolerance have passed.
KEPT_FOR = timedelta(minutes=21)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a signed call may be told from others by: its id, its time, and what it asks for."""

    webhook_id: str
    sent_at: datetime
    digest: bytes

    @classmethod
    def of(cls, webhook_id: str, timestamp: int, job: str, body: bytes) -> "Delivery":
        """Make one; the job is in what is compared, since it is not in what is signed."""
        digest = sha256(job.encode() + b"\n" + body).digest()
        return cls(webhook_id, datetime.fromtimestamp(timestamp, UTC), digest)


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls for which job's occurrence; without an instant, for the latest due. `proof`: how they proved it."""

    caller: str
    job: str
    proof: str
    scheduled_at: datetime | None = None
    delivery: Delivery | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The occurrence that the call is answered with.

    `repeated`: the same delivery had come before. `waits`: this call is the first to ask for it, and it starts by
    itself, as soon as the one before it is over; with `cancel_previous` that was just ended, and is in `ended`.
    """

    identity: Identity
    id: int
    state: str
    won: bool
    repeated: bool = False
    waits: bool = False
    ended: tuple[Ended, ...] = ()


@dataclass(frozen=True, slots=True)
class Declined:
    """Nothing was claimed or written. `outcome` is a word for the metric; after `again` seconds it may be otherwise."""

    outcome: str
    detail: str = ""
    again: float | None = None


class Refusal(Exception):
    """Undoes the transaction; nobody but who decides the call ever sees it."""

    def __init__(self, declined: Declined) -> None:
        """Take what is said instead."""
        super().__init__(declined.outcome)
        self.declined = declined


async def answer(
    session: Session, call: Call, claimant: Claimant, *, now: datetime | None = None
) -> Answered | Declined:
    """Decide a call. What it is answered with is committed; what it is declined with is not written anywhere."""
    try:
        async with transaction(session):
            if call.delivery is not None:
                earlier = await earlier_answer(session, call.caller, call.delivery, call.job, now)
                if earlier is not None:
                    return earlier
            answered = await _claimed(session, call, claimant, now)
            if call.delivery is not None:
                await session.execute(ANSWER_CALL, call.caller, call.delivery.webhook_id, answered.id)
    except Refusal as refusal:
        return refusal.declined
    await cancel_ended(session, answered.ended, by=claimant.instance, now=now)
    return answered


async def forget(session: Session, *, now: datetime | None = None) -> None:
    """Forget the signed calls that cannot come again."""
    await session.execute(FORGET_CALLS, KEPT_FOR, now)


async def earlier_answer(
    session: Session, caller: str, delivery: Delivery, job: str, now: datetime | None
) -> Answered | None:
    """Remember a delivery; give what an earlier one of the same call was answered with. Raises Refusal."""
    key = (caller, delivery.webhook_id)
    # Of several at once, all but one wait here, before the job's lock: so they cannot wait for each other.
    if await session.fetchval(REMEMBER_CALL, *key, delivery.digest, delivery.sent_at, TOLERANCE, now):
        return None
    row: Any = await session.fetchrow(REMEMBERED_CALL, *key, delivery.sent_at, TOLERANCE, now)
    if row is None:
        raise Refusal(Declined("timestamp"))
    if row["digest"] != delivery.digest:
        raise Refusal(Declined("reused", "this webhook-id was used for another call"))
    return Answered(Identity(job, row["scheduled_at"]), row["id"], row["state"], won=False, repeated=True)


async def _claimed(session: Session, call: Call, claimant: Claimant, now: datetime | None) -> Answered:
    """Claim what the call means, or find out who has. Raises Refusal."""
    job: Any = await session.fetchrow(LOCK_JOB, call.job)
    if job is None or job["retired_at"] is not None:
        raise Refusal(Declined("unknown", "no such job"))
    present = now or await database_now(session)
    if call.scheduled_at is None:
        scheduled_at = await _due(session, call.job, present)
    else:
        scheduled_at = _in_bounds(call.scheduled_at, job, present)
    identity = Identity(call.job, scheduled_at)
    reason = f"called from outside, {call.proof}"
    outcome = await claim_one(
        session, identity, claimant, fired_by=call.caller, actor_kind="caller", reason=reason, now=now
    )
    match outcome:
        case Won(claim):
            return Answered(identity, claim.id, "claimed", won=True)
        case Paused():
            raise Refusal(Declined("paused", "the job is paused"))
        case Foreign():
            raise Refusal(Declined("elsewhere", f"the job runs elsewhere: it checks in, at /v1/check-ins/{call.job}"))
        case Held(state="expected"):
            raise Refusal(Declined("unplanned", "the job is being planned anew", 5))
        case Held() | Overlapped(waits=True):
            told: tuple[Any, ...] = (call.job, scheduled_at, "", claimant.instance, call.caller, reason, {})
            found: Any = await session.fetchrow(AUDIT_CALL, *told, "caller")
            answered = Answered(identity, found["id"], found["state"], won=False)
            if isinstance(outcome, Overlapped):
                return replace(answered, waits=not found["asked_before"], ended=outcome.ended)
            return answered
    planned: Any = await session.fetchrow(FIND_OCCURRENCE, call.job, scheduled_at, "")
    raise Refusal(_declined(outcome, (planned["due_at"] if planned else scheduled_at) - present))


async def _due(session: Session, job: str, present: datetime) -> datetime:
    """Give the latest due instant, if it isn't later than start_within. Raises Refusal."""
    found: Any = await session.fetchrow(LATEST_DUE, job, present)
    if found["in_time"]:
        latest: datetime = found["scheduled_at"]
        return latest
    if found["until_next"] is not None and found["until_next"] <= SOON:
        raise Refusal(Declined("early", "nothing is due yet", found["until_next"].total_seconds()))
    raise Refusal(Declined("not_due", "nothing is due that is no later than the job's start_within"))


def _in_bounds(named: datetime, job: Any, present: datetime) -> datetime:
    """Give the named instant, if it isn't older than what the job catches up with. Raises Refusal."""
    within = timedelta(seconds=job["definition"]["decisions"]["catch_up_within"])
    if present - named > within:
        raise Refusal(Declined("too_old", "the instant is older than the job's catch_up_within"))
    if named - present > SOON:
        raise Refusal(Declined("not_due", "the instant is still to come"))
    return named


def _declined(outcome: Overlapped | Stale | NotDue | Pruned | OnHold, early: timedelta) -> Declined:
    match outcome:
        case Overlapped(active):
            return Declined("overlap", f"{active} still runs", 60)
        case OnHold():
            return Declined("held", "nothing runs at present", 60)
        case Stale():
            return Declined("unknown", "no such job")
        case Pruned():
            return Declined("too_old", "the instant is older than what is retained")
        case NotDue(known=True):
            return Declined("early", "the instant is not due yet", max(1.0, early.total_seconds()))
        case NotDue():
            return Declined("off_schedule", "the instant is not on the job's schedule")
