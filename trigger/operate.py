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
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.terminal import Refused
from trigger.claim import ACTIVE_OCCURRENCE, claim_one
from trigger.claim_outcome import Claimant, FireOutcome
from trigger.plan import LOCK_JOB
from trigger.reach import known_jobs, not_on_the_plan, require_job, unknown_job

LATEST_DUE = statement("trigger", "latest_due")
LOCK_OCCURRENCE = statement("trigger", "lock_occurrence")
CHOSEN_ACCOUNTS = statement("trigger", "chosen_accounts")
START_RERUN = statement("trigger", "start_rerun")
REOPEN_ACCOUNTS = statement("trigger", "reopen_accounts")
AUDIT_RERUN = statement("trigger", "audit_rerun")
CANCEL_OCCURRENCE = statement("trigger", "cancel_occurrence")

# A claim by hand has nobody to keep it: its lease is over at once, and any live trigger goes on.
NO_LEASE = timedelta(seconds=-1)
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Order:
    """Who acts, why, and the id of the process that does it for them."""

    actor: str
    reason: str
    instance: str


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
    """Give the latest instant of a job that is due, whatever became of it. Raises Refused."""
    instant: datetime | None = await session.fetchval(LATEST_DUE, job, now)
    if instant is None:
        await require_job(session, job)
        problem = f"nothing of {job} is due yet"
        raise Refused(problem)
    return instant


async def fire(
    session: Session, identity: Identity, order: Order, *, region: str = "", now: datetime | None = None
) -> FireOutcome:
    """Claim an occurrence by hand; the claim's lease is over at once, so that any live trigger goes on."""
    claimant = Claimant(order.instance, region, NO_LEASE)
    return await claim_one(session, identity, claimant, fired_by=order.actor, reason=order.reason, now=now)


async def rerun(
    session: Session, identity: Identity, choice: Choice, order: Order, *, now: datetime | None = None
) -> Rerun:
    """Run accounts of a closed occurrence again, in its next generation.

    Raises Refused when the occurrence runs, has succeeded or never ran; when a chosen account is unknown, has
    succeeded or can be no account's id; when nothing is left to run; when the provider may have forgotten the key.
    """
    async with session.transaction():
        job, row = await _locked(session, identity, now)
        _refuse_state(identity, row)
        if job["retired_at"] is not None:
            problem = f"{identity.job} is retired: nothing of it runs any more"
            raise Refused(problem)
        await _refuse_neighbour(session, identity)
        if job["definition"]["handler"]["mode"] == "Outside":
            _refuse_forgotten_key(identity, job, row, choice)
        if choice.accounts is not None:
            await _refuse_accounts(session, identity, row, choice.accounts)
        finish_within = timedelta(seconds=job["definition"]["decisions"]["finish_within"])
        opened: Any = await session.fetchrow(
            START_RERUN, row["id"], row["generation"], finish_within, _kept_report(row), now
        )
        salt = secrets.token_hex(8) if choice.new_key else None
        accounts = None if choice.accounts is None else list(choice.accounts)
        reopened = await session.fetchval(
            REOPEN_ACCOUNTS, row["id"], identity.scheduled_at, opened["generation"], accounts, salt
        )
        if not reopened and opened["state"] == "running":
            problem = f"no account of {identity} can be run again: ids that can be no account's stay failed"
            raise Refused(problem)
        started = Rerun(row["id"], opened["generation"], reopened, opened["state"])
        await _audit(session, identity, started, choice, order)
    await close(session, started.occurrence_id, by=order.instance, now=now)
    return started


async def cancel(session: Session, identity: Identity, order: Order, *, now: datetime | None = None) -> tuple[int, str]:
    """End an occurrence's dispatch, or have one that waits not run; give its id and its state (`skipped`: it waited).

    What is being executed settles as it settles. Raises Refused when it is over, or ends already.
    """
    async with session.transaction():
        _, row = await _locked(session, identity, now)
        state = await session.fetchval(CANCEL_OCCURRENCE, row["id"], order.actor, order.reason, order.instance)
        if state is None:
            raise Refused(_not_cancellable(identity, row))
    await close(session, row["id"], by=order.instance, now=now)
    return row["id"], state


async def _locked(session: Session, identity: Identity, now: datetime | None) -> tuple[Any, Row]:
    """Lock the job's row, then the occurrence's. Raises Refused when either is unknown."""
    job: Any = await session.fetchrow(LOCK_JOB, identity.job)
    if job is None:
        raise Refused(unknown_job(identity.job, await known_jobs(session)))
    row = await session.fetchrow(LOCK_OCCURRENCE, identity.job, identity.scheduled_at, identity.variant, now)
    if row is None:
        raise Refused(await not_on_the_plan(session, identity))
    return job, row


def _refuse_state(identity: Identity, row: Row) -> None:
    state = row["state"]
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


async def _refuse_neighbour(session: Session, identity: Identity) -> None:
    active = await session.fetchrow(ACTIVE_OCCURRENCE, identity.job)
    if active is not None:
        other = Identity(identity.job, active["scheduled_at"], active["variant"])
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
    problems = [
        f"{identity} {told}: {', '.join(map(repr, names[:SHOWN]))}{' …' if len(names) > SHOWN else ''}"
        for told, names in (
            ("has no account", unknown),
            ("has succeeded for", succeeded),
            ("has an id that can be no account's, and cannot run, in", invalid),
        )
        if names
    ]
    if problems:
        raise Refused("\n".join(problems))


def _kept_report(row: Row) -> dict[str, Any]:
    """Give the report of the new generation: how the earlier ones had ended, and why."""
    ended = Generation(
        generation=row["generation"],
        state=row["state"],
        closed_at=row["closed_at"],
        counts=Counts(succeeded=row["succeeded"], failed=row["failed"], dead=row["dead"], cancelled=row["cancelled"]),
        error_classes=msgspec.convert(row["report"].get("error_classes", [])[:CLASSES_KEPT], tuple[ErrorClass, ...]),
    )
    return {"generations": [*row["report"].get("generations", []), msgspec.to_builtins(ended)]}


async def _audit(session: Session, identity: Identity, started: Rerun, choice: Choice, order: Order) -> None:
    detail = {
        "generation": started.generation,
        "accounts": started.accounts,
        "chosen": "failed" if choice.accounts is None else list(choice.accounts[:SHOWN]),
        "reconciled": choice.reconciled,
        "new_key": choice.new_key,
    }
    await session.execute(
        AUDIT_RERUN, identity.job, started.occurrence_id, order.instance, order.actor, order.reason, detail
    )


def _not_cancellable(identity: Identity, row: Row) -> str:
    if row["ending"] is not None:
        return f"{identity} is ending already ({row['ending']}: {row['ending_reason']})"
    at = f" at {format_instant(row['closed_at'])}" if row["closed_at"] else ""
    return f"{identity} is over: it was {row['state']}{at}"


def _rough(duration: timedelta) -> str:
    hours = duration.total_seconds() / 3600
    return f"{hours:.1f} h" if hours >= 1 else f"{duration.total_seconds():.0f} s"
