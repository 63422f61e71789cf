"""The commands that act on an occurrence: fire, rerun, cancel."""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.occurrence import Identity, format_instant
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.terminal import (
    FAILED,
    NotDone,
    Refused,
    checked_reason,
    confirm,
    operator,
    print_json,
    read_instant,
    run,
    say,
    settings_for,
    told,
)
from shared.terminal_tables import print_line
from trigger.await_end import Ended, await_end
from trigger.claim_outcome import Held, NotDue, Overlapped, Stale, Won
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import Actor, AsJson, NewKey, Reason, Reconciled, Wait, Written
from trigger.reach import not_on_the_plan, reach, read_identity, require_job

if TYPE_CHECKING:
    from trigger.operate import Order

CLAIMER = statement("trigger", "claimer")
LATEST = "due"

# What a command did: the occurrence's id, what is said of it, and more for JSON.
Done = tuple[int, str, dict[str, Any]]


def fire_command(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")],
    *,
    at: Annotated[
        str, typer.Option("--at", metavar="INSTANT", help="A planned instant; `due` is the latest that is due.")
    ] = LATEST,
    reason: Reason,
    actor: Actor = None,
    wait: Wait = None,
    as_json: AsJson = False,
) -> None:
    """Claim a due occurrence now, by hand or from an outside scheduler. However often it is called, it runs once.

    Exit code 1: another has it, and is named. 2: the instant is not on the plan, or not due.
    """
    from trigger.operate import fire, latest_due  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order = _order(actor, reason)
        instant = None if at == LATEST else read_instant("--at", at)

        async def act(session: Session) -> Done:
            identity = Identity(job, instant or await latest_due(session, job))
            outcome = await fire(session, identity, order)
            if not isinstance(outcome, Won):
                raise await _why_not(session, identity, outcome)
            said = f"{identity} is claimed; any live trigger goes on with it"
            return outcome.claim.id, said, {"occurrence": str(identity), "generation": outcome.claim.generation}

        _act(act, "succeeded", wait=wait, as_json=as_json)


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
        order, identity = _order(actor, reason), read_identity(occurrence)
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
        order, identity = _order(actor, reason), read_identity(occurrence)

        async def act(session: Session) -> Done:
            occurrence_id, state = await cancel(session, identity, order)
            said = f"{identity} will not run" if state == "skipped" else f"{identity} ends; what runs settles first"
            return occurrence_id, said, {"occurrence": str(identity), "state": state}

        _act(act, "cancelled", wait=wait, as_json=as_json)


def _order(actor: str | None, reason: str) -> "Order":
    from shared.lifecycle import instance_id  # noqa: PLC0415 - a command loads only what it uses
    from trigger.operate import Order  # noqa: PLC0415 - a command loads only what it uses

    return Order((actor or operator())[:200], checked_reason(reason), instance_id())


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
    session: Session, identity: Identity, outcome: Held | Overlapped | NotDue | Stale
) -> NotDone | Refused:
    """Say why nothing was claimed: NotDone where another has it, Refused where it cannot be claimed."""
    match outcome:
        case Held():
            return NotDone(await _told_holder(session, identity, outcome))
        case Overlapped(active):
            return NotDone(f"{active} of the same job still runs: two never run at once")
        case NotDue(known=True):
            return Refused(f"{identity} is not due yet")
        case NotDue():
            await require_job(session, identity.job)
            return Refused(await not_on_the_plan(session, identity))
        case Stale():
            return Refused(f"{identity.job} is retired: nothing of it runs any more")


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
