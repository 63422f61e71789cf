"""The commands that act on an occurrence: fire, rerun, cancel."""

import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.occurrence import Identity, format_instant
from shared import clock
from shared.postgres import DatabaseUnavailable, Row, Session
from shared.sql_files import statement
from shared.terminal import (
    FAILED,
    NotDone,
    Refused,
    confirm,
    print_json,
    read_instant,
    run,
    say,
    settings_for,
    told,
)
from shared.terminal_tables import print_line
from trigger.await_end import Ended, await_end
from trigger.claim_outcome import Foreign, Held, NotDue, OnHold, Overlapped, Paused, Pruned, Stale, Won
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import (
    Actor,
    AdHoc,
    AsJson,
    At,
    Deduplicate,
    NewKey,
    Reason,
    Reconciled,
    Wait,
    WindowSince,
    WindowUntil,
    Written,
)
from trigger.commands_order import order_of
from trigger.reach import not_on_the_plan, reach, read_identity, require_job, require_occurrence

if TYPE_CHECKING:
    from trigger.operate import Order

CLAIMER = statement("trigger", "claimer")
LATEST = "due"

# What a command did: the occurrence's id, what is said of it, and more for JSON.
Done = tuple[int, str, dict[str, Any]]
Window = tuple[datetime | None, datetime | None]


def fire_command(  # noqa: PLR0913 - each is an option of the command line
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")],
    *,
    at: At = LATEST,
    ad_hoc: AdHoc = False,
    since: WindowSince = None,
    until: WindowUntil = None,
    reason: Reason,
    deduplicate: Deduplicate = False,
    actor: Actor = None,
    wait: Wait = None,
    as_json: AsJson = False,
) -> None:
    """Claim a due occurrence now, by hand or from an outside scheduler. However often it is called, it runs once.

    Exit code 0: claimed; with --deduplicate, also when it was claimed before, or is over. 1: another has it, and is
    named; another of the job runs, it is paused, all is held, the instant is up to a minute away, or the database is
    away: come again. 2: not on the plan, or not due: calling again changes nothing. With --wait, 0 if it succeeds.

    With --ad-hoc each call runs the job once more, as an occurrence of its own beside the schedule; a paused job too.
    """
    from trigger.operate import latest_due  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order = order_of(actor, reason)
        instant = None if at == LATEST else read_instant("--at", at)
        window = _window(since, until, ad_hoc=ad_hoc, planned=instant is not None, deduplicate=deduplicate)

        async def act(session: Session) -> Done:
            if ad_hoc:
                return await _fire_ad_hoc(session, job, order, window)
            identity = Identity(job, instant or await latest_due(session, job))
            return await _fired(session, identity, order, deduplicate=deduplicate)

        try:
            _act(act, "succeeded", wait=wait, as_json=as_json)
        except DatabaseUnavailable as error:
            # Whoever calls for a scheduler is to come again.
            raise NotDone(str(error)) from error


def rerun_command(  # noqa: PLR0913 - each is an option of the command line
    occurrence: Written,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="All accounts that did not succeed.")] = False,
    account: Annotated[list[str] | None, typer.Option("--account", help="This account; may be repeated.")] = None,
    reason: Reason,
    reconciled: Reconciled = False,
    new_key: NewKey = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask before new keys.")] = False,
    actor: Actor = None,
    wait: Wait = None,
    as_json: AsJson = False,
) -> None:
    """Run accounts that did not succeed again, in the same occurrence, as its next generation.

    Exit code 2 when it runs, has succeeded or never ran, and for an account that it doesn't have or that has succeeded.
    """
    from trigger.operate import Choice, rerun  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order, identity = order_of(actor, reason), read_identity(occurrence)
        if failed == bool(account):
            problem = "choose --failed, or accounts with --account"
            raise Refused(problem)
        if new_key:
            confirm("With new keys, effects outside the database that did happen will happen again. Go on?", yes=yes)
        choice = Choice(tuple(account) if account else None, reconciled, new_key)

        async def act(session: Session) -> Done:
            started = await rerun(session, identity, choice, order)
            going_on = "" if started.state == "running" else "; the reading of its accounts goes on"
            said = f"{identity} runs {started.accounts} accounts again, in generation {started.generation}{going_on}"
            more = {"generation": started.generation, "accounts": started.accounts, "state": started.state}
            return started.occurrence_id, said, {"occurrence": str(identity), **more}

        _act(act, "succeeded", wait=wait, as_json=as_json)


def cancel_command(
    occurrence: Written, *, reason: Reason, actor: Actor = None, wait: Wait = None, as_json: AsJson = False
) -> None:
    """Cancel an occurrence. One that waits will not run; of one that runs, what is not started yet is left out.

    With --wait, exit code 0 once it is cancelled. 2 when it is over, or ends already.
    """
    from trigger.operate import cancel  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order, identity = order_of(actor, reason), read_identity(occurrence)

        async def act(session: Session) -> Done:
            occurrence_id, state = await cancel(session, identity, order)
            said = f"{identity} will not run" if state == "skipped" else f"{identity} ends; what runs settles first"
            return occurrence_id, said, {"occurrence": str(identity), "state": state}

        _act(act, "cancelled", wait=wait, as_json=as_json)


def _window(since: str | None, until: str | None, *, ad_hoc: bool, planned: bool, deduplicate: bool) -> Window:
    """Read an ad-hoc occurrence's window. Raises Refused for options that do not go together."""
    if ad_hoc and planned:
        raise Refused("--at: names a planned instant; with --ad-hoc the occurrence is of this second")
    if ad_hoc and deduplicate:
        raise Refused("--deduplicate: with --ad-hoc each call runs the job once more; leave one of the two out")
    if not ad_hoc and (since or until):
        raise Refused("--since and --until are an --ad-hoc occurrence's; a planned one has its own window")
    return read_instant("--since", since) if since else None, read_instant("--until", until) if until else None


async def _fire_ad_hoc(session: Session, job: str, order: "Order", window: Window) -> Done:
    from trigger.ad_hoc import fire_ad_hoc  # noqa: PLC0415 - a command loads only what it uses

    outcome = await fire_ad_hoc(session, job, order, *window)
    if not isinstance(outcome, Won):
        raise await _why_not(session, Identity(job, clock.utc_now()), outcome)
    claim = outcome.claim
    said = f"{claim.identity} is claimed; any live trigger goes on with it"
    covers = {"since": claim.window.since, "until": claim.window.until}
    return claim.id, said, {"occurrence": str(claim.identity), "generation": claim.generation, "window": covers}


async def _fired(session: Session, identity: Identity, order: "Order", *, deduplicate: bool) -> Done:
    """Claim an occurrence. Raises NotDone or Refused where it isn't claimed, or isn't taken for claimed."""
    from trigger.operate import fire  # noqa: PLC0415 - a command loads only what it uses

    outcome = await fire(session, identity, order)
    more: dict[str, Any] = {"occurrence": str(identity), "deduplicated": not isinstance(outcome, Won)}
    if isinstance(outcome, Won):
        said = f"{identity} is claimed; any live trigger goes on with it"
        return outcome.claim.id, said, more | {"generation": outcome.claim.generation}
    if not deduplicate or not isinstance(outcome, Held) or outcome.state == "expected":
        raise await _why_not(session, identity, outcome)
    row = await require_occurrence(session, identity)
    return row["id"], await _told_holder(session, identity, outcome), more | {"state": row["state"]}


def _act(act: Callable[[Session], Awaitable[Done]], goal: str, *, wait: bool | None, as_json: bool) -> None:
    """Act, say what was done, and wait for the end if asked to; the end must be `goal`, or `skipped` at once."""
    settings = settings_for("environment", "database_url")
    waits = sys.stdout.isatty() if wait is None else wait

    async def work() -> tuple[str, dict[str, Any], Ended | None]:
        async with reach(settings) as session:
            occurrence_id, said, more = await act(session)
            if not waits:
                return said, more, None
            say(PROGRAM, said)
            return said, more, await await_end(session, occurrence_id, more["occurrence"])

    said, more, ended = run(work)
    if ended is not None:
        more |= {"state": ended.state, "reason": ended.reason, "counts": ended.counts}
    if as_json:
        print_json(more)
    elif ended is None:
        print_line(said)
    else:
        counts = ", ".join(f"{count} {name}" for name, count in ended.counts.items() if count) or "no accounts"
        print_line(f"{more['occurrence']}: {ended.state} ({counts})" + (f", {ended.reason}" if ended.reason else ""))
    if ended is not None and ended.state not in {goal, "skipped"}:
        raise typer.Exit(FAILED)


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
    from trigger.operate import SOON  # noqa: PLC0415 - a command loads only what it uses

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
