"""Firing as a person orders it: what is claimed, or in words why nothing is. For the command line and the console."""

from datetime import datetime
from typing import Any

from schemas.occurrence import Identity, format_instant
from shared import clock
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.terminal import NotDone, Refused
from trigger.ad_hoc import fire_ad_hoc
from trigger.claim_outcome import Foreign, Held, NotDue, OnHold, Overlapped, Paused, Pruned, Stale, Won
from trigger.operate import SOON, Order, Rerun, fire, latest_due
from trigger.reach import not_on_the_plan, require_job, require_occurrence

CLAIMER = statement("trigger", "claimer")

# What was done: the occurrence's id, what is said of it, and more for JSON.
Done = tuple[int, str, dict[str, Any]]
Window = tuple[datetime | None, datetime | None]


async def fired_ad_hoc(session: Session, job: str, order: Order, window: Window) -> Done:
    """Run a job once beside its schedule. Raises NotDone or Refused where it isn't claimed."""
    outcome = await fire_ad_hoc(session, job, order, *window)
    if not isinstance(outcome, Won):
        raise await _why_not(session, Identity(job, clock.utc_now()), outcome)
    claim = outcome.claim
    said = f"{claim.identity} is claimed; any live trigger goes on with it"
    covers = {"since": claim.window.since, "until": claim.window.until}
    return claim.id, said, {"occurrence": str(claim.identity), "generation": claim.generation, "window": covers}


async def fired(
    session: Session, job: str, instant: datetime | None, order: Order, *, deduplicate: bool = False
) -> Done:
    """Claim the occurrence of an instant, or with None the latest that is due.

    Raises NotDone or Refused where it isn't claimed, or isn't taken for claimed.
    """
    identity = Identity(job, instant or await latest_due(session, job))
    outcome = await fire(session, identity, order)
    more: dict[str, Any] = {"occurrence": str(identity), "deduplicated": not isinstance(outcome, Won)}
    if isinstance(outcome, Won):
        said = f"{identity} is claimed; any live trigger goes on with it"
        return outcome.claim.id, said, more | {"generation": outcome.claim.generation}
    if not deduplicate or not isinstance(outcome, Held) or outcome.state == "expected":
        raise await _why_not(session, identity, outcome)
    row = await require_occurrence(session, identity)
    return row["id"], await _told_holder(session, identity, outcome), more | {"state": row["state"]}


async def _why_not(
    session: Session,
    identity: Identity,
    outcome: Held | Overlapped | NotDue | Pruned | OnHold | Paused | Stale | Foreign,
) -> NotDone | Refused:
    """Say why nothing was claimed: NotDone where another has it, or it may be later; Refused where it cannot be."""
    match outcome:
        case Held():
            return NotDone(await _told_holder(session, identity, outcome))
        case Overlapped():
            return NotDone(_in_the_way(identity, outcome))
        case OnHold(reason):
            return NotDone(f"everything is held ({reason}): see `reconcile`")
        case Paused(since, why):
            told_since = format_instant(since.replace(microsecond=0))
            return NotDone(f"{identity.job} is paused since {told_since} ({why}): `resume` it first")
        case NotDue(known=False):
            await require_job(session, identity.job)
            return Refused(await not_on_the_plan(session, identity))
        case _:
            return _never(identity, outcome)


def _in_the_way(identity: Identity, outcome: Overlapped) -> str:
    state = "is cancelled" if outcome.ended else "still runs"
    if outcome.waits:
        then = f"{identity} starts when that is over"
    else:
        then = f"fire {identity} again when that is over" if outcome.ended else "two never run at once"
    return f"{outcome.active} of the same job {state}: {then}"


def _never(identity: Identity, outcome: NotDue | Pruned | Stale | Foreign) -> NotDone | Refused:
    match outcome:
        case NotDue():
            problem = f"{identity} is not due yet"
            # By the caller's clock it may be, a little ahead of the database's.
            return NotDone(problem) if identity.scheduled_at - clock.utc_now() <= SOON else Refused(problem)
        case Pruned(retained_from):
            told_from = format_instant(retained_from)
            return Refused(f"{identity} is older than what is retained, which begins at {told_from}")
        case Stale():
            return Refused(f"{identity.job} is retired: nothing of it runs any more")
        case Foreign():
            return Refused(f"{identity.job} runs elsewhere: have it run there; `check-in` records that it has")


async def _told_holder(session: Session, identity: Identity, held: Held) -> str:
    if held.state == "expected":
        return (
            f"{identity} is planned under another definition than the current one: a live trigger has to plan it anew"
        )
    if held.claimed_by is None or held.claimed_at is None:
        return f"{identity} was {held.state} ({held.reason or 'into a later one'}): it does not run"
    row: Row | None = await session.fetchrow(CLAIMER, identity.job, identity.scheduled_at, identity.variant)
    host = f" on {row['host']}" if row and row["host"] else ""
    fired = f", fired by {row['fired_by']}: {row['fire_reason']}" if row and row["fired_by"] else ""
    since = format_instant(held.claimed_at.replace(microsecond=0))
    state = held.state if held.state in {"succeeded", "failed"} else f"is {held.state}"
    return f"{identity} {state}: claimed at {since} by {held.claimed_by}{host}{fired}"


def told_rerun(identity: Identity, started: Rerun) -> str:
    """Say what a re-run has started."""
    going_on = "" if started.state == "running" else "; the reading of its accounts goes on"
    return f"{identity} runs {started.accounts} accounts again, in generation {started.generation}{going_on}"


def told_cancel(identity: Identity, state: str) -> str:
    """Say what becomes of an occurrence that was cancelled."""
    return f"{identity} will not run" if state == "skipped" else f"{identity} ends; what runs settles first"
