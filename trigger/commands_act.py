"""The commands that act on an occurrence: fire, rerun, cancel."""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shared.postgres import DatabaseUnavailable, Session
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
from trigger.reach import reach, read_identity

if TYPE_CHECKING:
    from trigger.firing import Done, Window

LATEST = "due"


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
    from trigger.firing import fired, fired_ad_hoc  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order = order_of(actor, reason)
        instant = None if at == LATEST else read_instant("--at", at)
        window = _window(since, until, ad_hoc=ad_hoc, planned=instant is not None, deduplicate=deduplicate)

        async def act(session: Session) -> "Done":
            if ad_hoc:
                return await fired_ad_hoc(session, job, order, window)
            return await fired(session, job, instant, order, deduplicate=deduplicate)

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
    from trigger.firing import told_rerun  # noqa: PLC0415 - a command loads only what it uses
    from trigger.operate import Choice, rerun  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order, identity = order_of(actor, reason), read_identity(occurrence)
        if failed == bool(account):
            problem = "choose --failed, or accounts with --account"
            raise Refused(problem)
        if new_key:
            confirm("With new keys, effects outside the database that did happen will happen again. Go on?", yes=yes)
        choice = Choice(tuple(account) if account else None, reconciled, new_key)

        async def act(session: Session) -> "Done":
            started = await rerun(session, identity, choice, order)
            more = {"generation": started.generation, "accounts": started.accounts, "state": started.state}
            return started.occurrence_id, told_rerun(identity, started), {"occurrence": str(identity), **more}

        _act(act, "succeeded", wait=wait, as_json=as_json)


def cancel_command(
    occurrence: Written, *, reason: Reason, actor: Actor = None, wait: Wait = None, as_json: AsJson = False
) -> None:
    """Cancel an occurrence. One that waits will not run; of one that runs, what is not started yet is left out.

    With --wait, exit code 0 once it is cancelled. 2 when it is over, or ends already.
    """
    from trigger.firing import told_cancel  # noqa: PLC0415 - a command loads only what it uses
    from trigger.operate import cancel  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order, identity = order_of(actor, reason), read_identity(occurrence)

        async def act(session: Session) -> "Done":
            occurrence_id, state = await cancel(session, identity, order)
            return occurrence_id, told_cancel(identity, state), {"occurrence": str(identity), "state": state}

        _act(act, "cancelled", wait=wait, as_json=as_json)


def _window(since: str | None, until: str | None, *, ad_hoc: bool, planned: bool, deduplicate: bool) -> "Window":
    """Read an ad-hoc occurrence's window. Raises Refused for options that do not go together."""
    if ad_hoc and planned:
        raise Refused("--at: names a planned instant; with --ad-hoc the occurrence is of this second")
    if ad_hoc and deduplicate:
        raise Refused("--deduplicate: with --ad-hoc each call runs the job once more; leave one of the two out")
    if not ad_hoc and (since or until):
        raise Refused("--since and --until are an --ad-hoc occurrence's; a planned one has its own window")
    return read_instant("--since", since) if since else None, read_instant("--until", until) if until else None


def _act(act: Callable[[Session], Awaitable["Done"]], goal: str, *, wait: bool | None, as_json: bool) -> None:
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
