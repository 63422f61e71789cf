"""The commands about whether a job may fire: pause, resume, retire, unretire."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from shared.postgres import Session
from shared.terminal import print_json, run, settings_for, told
from shared.terminal_tables import print_line
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import Actor, AsJson, Reason
from trigger.commands_order import order_of
from trigger.pauses import Changed, Meanwhile, pause, resume, retire, told_change, unretire
from trigger.reach import reach

if TYPE_CHECKING:
    from trigger.operate import Order

JobName = Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")]


def pause_command(
    job: JobName,
    *,
    reason: Reason,
    meanwhile: Annotated[
        Meanwhile,
        typer.Option("--meanwhile", help="What becomes of what falls due: `skip` it, or `hold` it until `resume`."),
    ] = "skip",
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Have nothing of a job's schedule fire until `resume`: not by itself, by `fire`, by a backfill or from outside.

    What runs already goes on to its end; `cancel` it if it must not. `fire --ad-hoc` and `rerun` work meanwhile. To
    pause a paused job with the other fate changes it. Exit code 2 when it is paused so already, or retired; and for
    `hold` of a job that each worker runs for itself, of which nothing can wait.
    """
    _act(job, actor, reason, lambda session, order: pause(session, job, order, meanwhile), "paused", as_json=as_json)


def resume_command(job: JobName, *, reason: Reason, actor: Actor = None, as_json: AsJson = False) -> None:
    """Let a paused job's schedule fire again, from now on.

    It never fires for the time before, unless the pause held it: that is decided by the job's catch_up, as after a
    downtime. `backfill` runs what a pause has skipped. Exit code 2 when it is not paused.
    """
    _act(job, actor, reason, lambda session, order: resume(session, job, order), "resumed", as_json=as_json)


def retire_command(job: JobName, *, reason: Reason, actor: Actor = None, as_json: AsJson = False) -> None:
    """End a job: what waits is skipped, nothing of it fires or alarms any more; nothing is deleted.

    What runs already goes on to its end. A process that still declares the job says so once in its log, and runs its
    other jobs. The way back is `unretire`. Exit code 2 when it is retired already.
    """
    _act(job, actor, reason, lambda session, order: retire(session, job, order), "retired", as_json=as_json)


def unretire_command(job: JobName, *, reason: Reason, actor: Actor = None, as_json: AsJson = False) -> None:
    """Bring a retired job back: it fires from now on, as the fleet declares it; what was due meanwhile stays skipped.

    A declaration alone brings nothing back, since an old process may still have it. Exit code 2: it is not retired.
    """
    _act(job, actor, reason, lambda session, order: unretire(session, job, order), "not retired", as_json=as_json)


def _act(
    job: str,
    actor: str | None,
    reason: str,
    act: Callable[[Session, "Order"], Awaitable[Changed]],
    now_it_is: str,
    *,
    as_json: bool,
) -> None:
    with told(PROGRAM):
        order = order_of(actor, reason)
        settings = settings_for("environment", "database_url")

        async def work() -> Changed:
            async with reach(settings) as session:
                return await act(session, order)

        changed = run(work)
        if as_json:
            print_json({"job": job, "standing": now_it_is, **asdict(changed.standing), **_counts(changed)})
        else:
            for line in told_change(job, now_it_is, changed):
                print_line(line)


def _counts(changed: Changed) -> dict[str, object]:
    return {"running": changed.running, "skipped": changed.skipped, "expected": changed.expected}
