"""What an operator does by hand: fire, re-run, cancel. Each is one transaction behind the job row's lock.

So of two operators at once, or of an operator and the schedule, one acts and the other is told what was done.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from schemas.occurrence import Identity, format_instant
from schemas.report import CLASSES_KEPT, Counts, ErrorClass, Generation
from schemas.states import RERUNNABLE
from shared.close import close
from shared.postgres import Row, Session, transaction
from shared.sql_files import statement
from shared.terminal import NotDone, Refused
from trigger.claim import claim_one
from trigger.claim_outcome import Claimant, FireOutcome, Held, Overlapped
from trigger.decide import running_of
from trigger.locked_job import locked_job
from trigger.reach import not_on_the_plan, require_job
from trigger.sweep import cancel_ended

LATEST_DUE = statement("trigger", "latest_due")
AUDIT_CALL = statement("trigger", "audit_call")
LOCK_OCCURRENCE = statement("trigger", "lock_occurrence")
CHOSEN_ACCOUNTS = statement("trigger", "chosen_accounts")
START_RERUN = statement("trigger", "start_rerun")
REOPEN_ACCOUNTS = statement("trigger", "reopen_accounts")
AUDIT_RERUN = statement("trigger", "audit_rerun")
CANCEL_OCCURRENCE = statement("trigger", "cancel_occurrence")

# A claim by hand has nobody to keep it: its lease is over at once, and any live trigger goes on.
NO_LEASE = timedelta(seconds=-1)
# A caller whose clock is this much ahead of the database's is to come again; anything earlier is a mistake.
SOON = timedelta(minutes=1)
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Order:
    """Who acts, why, and the id of the process that does it for them, and its host if that is known."""

    actor: str
    reason: str
    instance: str
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What to run again: `accounts`, or with None all that did not succeed.

    `reconciled`: somebody has looked at the provider's books, so an old key may be used again. `new_key`: the accounts
    get a new idempotency key, so the provider takes them for new.
    """

    accounts: tuple[str, ...] | None = None
    reconciled: bool = False
    new_key: bool = False


@dataclass(frozen=True, slots=True)
class Rerun:
    """A started re-run: its generation, the accounts that it opened, and `running` or `claimed` (never sealed)."""

    occurrence_id: int
    generation: int
    accounts: int
    state: str


async def latest_due(session: Session, job: str, *, now: datetime | None = None) -> datetime:
    """Give the latest instant of a job that is due and no later than its start_within, whatever became of it.

    Raises NotDone when nothing is, but the next will be in at most a minute; Refused otherwise.
    """
    found: Any = await session.fetchrow(LATEST_DUE, job, now)
    if found is None:
        await require_job(session, job)
    elif not found["in_time"] and found["until_next"] is not None and found["until_next"] <= SOON:
        raise NotDone(f"nothing of {job} is due yet: the next is in {_rough(found['until_next'])}")
    if found is None or found["scheduled_at"] is None:
        own = found is not None and found["coordination"] == "every"
        raise Refused(f"{job} is run by each worker for itself" if own else f"nothing of {job} is due yet")
    instant: datetime = found["scheduled_at"]
    if not found["in_time"]:
        latest, within = format_instant(instant), _rough(timedelta(seconds=found["start_within"]))
        problem = f"nothing of {job} is due: the latest was {latest}, later than start_within ({within}) ago; "
        raise Refused(problem + f"name it to have it run all the same: --at {latest}")
    return instant


async def fire(
    session: Session, identity: Identity, order: Order, *, region: str = "", now: datetime | None = None
) -> FireOutcome:
    """Claim an occurrence by hand; the claim's lease is over at once, so that any live trigger goes on.

    Whoever comes too late, or has it wait for the one before, is in the audit trail too.
    """
    claimant = Claimant(order.instance, region, NO_LEASE, order.host)
    outcome = await claim_one(session, identity, claimant, fired_by=order.actor, reason=order.reason, now=now)
    if isinstance(outcome, Overlapped):
        await cancel_ended(session, outcome.ended, by=order.instance, now=now)
    if outcome.waits if isinstance(outcome, Overlapped) else isinstance(outcome, Held) and outcome.state != "expected":
        named = (identity.job, identity.scheduled_at, identity.variant)
        await session.execute(AUDIT_CALL, *named, order.instance, order.actor, order.reason, {}, "operator")
    return outcome


async def rerun(
    session: Session, identity: Identity, choice: Choice, order: Order, *, now: datetime | None = None
) -> Rerun:
    """Run accounts of a closed occurrence again, in its next generation.

    Raises Refused when the occurrence runs, has succeeded or never ran; when a chosen account is unknown, has
    succeeded or can be no account's id; when nothing is left to run; when the provider may have forgotten the key.
    """
    async with transaction(session):
        job, row = await _locked(session, identity, now)
        _refuse_state(identity, row)
        _refuse_pruned(identity, row)
        if row["held"] is not None:
            raise Refused(f"everything is held ({row['held']}): see `reconcile`")
        if job["retired_at"] is not None:
            raise Refused(f"{identity.job} is retired: nothing of it runs any more")
        if job["definition"]["coordination"] == "elsewhere":
            raise Refused(f"{identity.job} runs elsewhere: run it again there, and have it check in as another run")
        if job["definition"]["decisions"]["overlap"] != "allow":
            await _refuse_neighbour(session, identity)
        started = await _open(session, identity, job, row, choice, order, now=now)
    await close(session, started.occurrence_id, by=order.instance, now=now)
    return started


async def open_again(
    session: Session, identity: Identity, job: Any, choice: Choice, order: Order, *, now: datetime | None = None
) -> Rerun:
    """Open a closed occurrence for its next generation, for one who holds the lock of its job's row, `job`, and closes.

    Raises Refused for what `rerun` refuses, but for a neighbour that runs, and a hold: those are the caller's to see.
    """
    row: Any = await session.fetchrow(LOCK_OCCURRENCE, identity.job, identity.scheduled_at, identity.variant, now)
    _refuse_state(identity, row)
    _refuse_pruned(identity, row)
    return await _open(session, identity, job, row, choice, order, now=now)


async def _open(
    session: Session, identity: Identity, job: Any, row: Row, choice: Choice, order: Order, *, now: datetime | None
) -> Rerun:
    if job["definition"]["handler"]["mode"] == "Outside":
        _refuse_forgotten_key(identity, job, row, choice)
    if choice.accounts is not None:
        await _refuse_accounts(session, identity, row, choice.accounts)
    finish_within = timedelta(seconds=job["definition"]["decisions"]["finish_within"])
    opened: Any = await session.fetchrow(
        START_RERUN, row["id"], row["generation"], finish_within, kept_report(row), now
    )
    salt = secrets.token_hex(8) if choice.new_key else None
    accounts = None if choice.accounts is None else list(choice.accounts)
    reopened = await session.fetchval(
        REOPEN_ACCOUNTS, row["id"], identity.scheduled_at, opened["generation"], accounts, salt
    )
    if not reopened and opened["state"] == "running":
        raise Refused(f"no account of {identity} can be run again: ids that can be no account's stay failed")
    started = Rerun(row["id"], opened["generation"], reopened, opened["state"])
    await _audit(session, identity, started, choice, order, row["state"])
    return started


async def cancel(session: Session, identity: Identity, order: Order, *, now: datetime | None = None) -> tuple[int, str]:
    """End an occurrence's dispatch, or have one that waits not run; give its id and its state (`skipped`: it waited).

    What is being executed settles as it settles. Raises Refused when it is over, or ends already.
    """
    async with transaction(session):
        _, row = await _locked(session, identity, now)
        state = await session.fetchval(CANCEL_OCCURRENCE, row["id"], order.actor, order.reason, order.instance)
        if state is None:
            raise Refused(_not_cancellable(identity, row))
    await close(session, row["id"], by=order.instance, now=now)
    return row["id"], state


async def _locked(session: Session, identity: Identity, now: datetime | None) -> tuple[Any, Row]:
    """Lock the job's row, then the occurrence's. Raises Refused when either is unknown."""
    job = await locked_job(session, identity.job)
    row = await session.fetchrow(LOCK_OCCURRENCE, identity.job, identity.scheduled_at, identity.variant, now)
    if row is None:
        raise Refused(await not_on_the_plan(session, identity))
    return job, row


def _refuse_state(identity: Identity, row: Row) -> None:
    state = row["state"]
    if identity.variant.startswith("@"):
        problem = f"{identity} is a worker's own: nobody else runs it, and that worker runs the next instant"
        raise Refused(problem)
    if state in RERUNNABLE:
        return
    if state in {"claimed", "running"}:
        problem = f"{identity} runs already, in generation {row['generation']}: wait for its end, or cancel it"
    elif state == "succeeded":
        problem = f"{identity} has succeeded: there is nothing to run again"
    elif state == "expected":
        problem = f"{identity} has not run yet: fire it"
    else:
        problem = f"{identity} never ran: it was {state} ({row['reason'] or 'into a later one'})"
    raise Refused(problem)


def _refuse_pruned(identity: Identity, row: Row) -> None:
    if row["pruned_before"] is not None:
        problem = (
            f"the accounts of {identity} were pruned: nothing due before {format_instant(row['pruned_before'])} runs"
        )
        raise Refused(problem)


async def _refuse_neighbour(session: Session, identity: Identity) -> None:
    other = await running_of(session, identity.job)
    if other is not None:
        problem = f"{other} of the same job still runs: two never run at once; wait for its end, or cancel it"
        raise Refused(problem)


def _refuse_forgotten_key(identity: Identity, job: Any, row: Row, choice: Choice) -> None:
    valid_for = timedelta(seconds=job["definition"]["handler"]["key_valid_for"])
    age = row["now"] - row["claimed_at"]
    if age <= valid_for or choice.reconciled or choice.new_key:
        return
    problem = (
        f"{identity} was claimed {_rough(age)} ago, and its provider remembers a key for {_rough(valid_for)}: an "
        "effect could happen twice. Compare with the provider's books, then add --reconciled, or --new-key for a new "
        "effect"
    )
    raise Refused(problem)


async def _refuse_accounts(session: Session, identity: Identity, row: Row, accounts: Sequence[str]) -> None:
    if row["sealed_at"] is None:
        problem = f"the accounts of {identity} were never all read, so single ones cannot be chosen: use --failed"
        raise Refused(problem)
    found = await session.fetch(CHOSEN_ACCOUNTS, row["id"], identity.scheduled_at, list(dict.fromkeys(accounts)))
    unknown = [one["account"] for one in found if one["state"] is None]
    succeeded = [one["account"] for one in found if one["state"] == "succeeded"]
    invalid = [one["account"] for one in found if one["error_class"] == "invalid_account"]
    forgotten = [one["account"] for one in found if one["error_class"] == "forgotten_account"]
    problems = [
        f"{identity} {told}: {', '.join(map(repr, names[:SHOWN]))}{' …' if len(names) > SHOWN else ''}"
        for told, names in (
            ("has no account", unknown),
            ("has succeeded for", succeeded),
            ("has an id that can be no account's, and cannot run, in", invalid),
            ("was made to forget", forgotten),
        )
        if names
    ]
    if problems:
        raise Refused("\n".join(problems))


def kept_report(row: Row) -> dict[str, Any]:
    """Give the report of the new generation: how the earlier ones had ended, and why."""
    ended = Generation(
        generation=row["generation"],
        state=row["state"],
        closed_at=row["closed_at"],
        counts=Counts(succeeded=row["succeeded"], failed=row["failed"], dead=row["dead"], cancelled=row["cancelled"]),
        error_classes=msgspec.convert(row["report"].get("error_classes", [])[:CLASSES_KEPT], tuple[ErrorClass, ...]),
    )
    return {"generations": [*row["report"].get("generations", []), msgspec.to_builtins(ended)]}


async def _audit(
    session: Session, identity: Identity, started: Rerun, choice: Choice, order: Order, before: str
) -> None:
    chosen = "failed" if choice.accounts is None else list(choice.accounts[:SHOWN])
    told = {"before": before, "after": started.state, "generation": started.generation, "accounts": started.accounts}
    told |= {"chosen": chosen, "reconciled": choice.reconciled, "new_key": choice.new_key}
    by = (order.instance, order.actor, order.reason)
    await session.execute(AUDIT_RERUN, identity.job, started.occurrence_id, *by, told)


def _not_cancellable(identity: Identity, row: Row) -> str:
    if row["ending"] is not None:
        return f"{identity} is ending already ({row['ending']}: {row['ending_reason']})"
    at = f" at {format_instant(row['closed_at'])}" if row["closed_at"] else ""
    return f"{identity} is over: it was {row['state']}{at}"


def _rough(duration: timedelta) -> str:
    hours = duration.total_seconds() / 3600
    return f"{hours:.1f} h" if hours >= 1 else f"{duration.total_seconds():.0f} s"
