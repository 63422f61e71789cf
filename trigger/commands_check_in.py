"""The command with which work that runs elsewhere checks in, where it can reach the database."""

import re
from datetime import datetime
from typing import Annotated, Any

import typer

from shared.postgres import DatabaseUnavailable
from shared.terminal import NotDone, Refused, operator, print_json, read_instant, run, settings_for, told
from shared.terminal_tables import print_line
from trigger.check_in_rules import RUN, Event
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import Actor, AsJson
from trigger.reach import reach, require_job

MEANT = "due"
AGAIN = frozenset({"early", "paused", "moved"})


def check_in_command(
    job: Annotated[str, typer.Argument(metavar="JOB", help="A job that is declared as RunsElsewhere.")],
    event: Annotated[Event, typer.Argument(metavar="start|success|fail", help="What is reported.")],
    *,
    at: Annotated[
        str,
        typer.Option("--at", metavar="INSTANT", help="A planned instant; `due`: what --run has, or the latest due."),
    ] = MEANT,
    run_id: Annotated[
        str | None, typer.Option("--run", metavar="NAME", help="Names this run; a retry is another run.")
    ] = None,
    message: Annotated[str, typer.Option("--message", help="With fail: why; its first 500 characters are kept.")] = "",
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Report that work which runs elsewhere has started, succeeded or failed.

    A success needs no start, and mends a failure. What comes again changes nothing. Exit code 0: recorded, now or
    before. 1: the job is paused, the instant is up to a minute away, or the database is away: come again. 2: not on the
    plan, not due or too old; the occurrence has ended otherwise, or another run has it; the job does not check in.
    """
    with told(PROGRAM):
        if run_id is not None and not re.search(RUN, run_id):
            raise Refused("--run: is 1 to 100 letters, digits and . _ : / + @ -")
        if message and event != "fail":
            raise Refused("--message: goes with fail")
        instant = None if at == MEANT else read_instant("--at", at)
        try:
            recorded = _recorded(job, event, instant, run_id, message, actor)
        except DatabaseUnavailable as error:
            raise NotDone(str(error)) from error
        if as_json:
            print_json(recorded)
        else:
            before = ", as was reported before" if recorded["deduplicated"] else ""
            state = "is running" if recorded["state"] == "claimed" else recorded["state"]
            print_line(f"{recorded['occurrence']} {state}{before}")


def _recorded(
    job: str, event: Event, at: datetime | None, run_id: str | None, message: str, actor: str | None
) -> dict[str, Any]:
    """Check in. Raises NotDone or Refused where that is declined."""
    from shared.lifecycle import instance_id  # noqa: PLC0415 - a command loads only what it uses
    from trigger.check_in import CheckIn, check_in  # noqa: PLC0415 - a command loads only what it uses
    from trigger.outside_call import Declined  # noqa: PLC0415 - a command loads only what it uses

    settings = settings_for("environment", "database_url")
    who = (actor or operator())[:200]
    asked = CheckIn(
        job,
        event,
        who,
        "command line",
        instance_id(),
        scheduled_at=at,
        run=run_id,
        message=message,
        actor_kind="operator",
    )

    async def work() -> dict[str, Any]:
        async with reach(settings) as session:
            answered = await check_in(session, asked)
            if not isinstance(answered, Declined):
                found = {"occurrence": str(answered.identity), "id": answered.id, "state": answered.state}
                return {**found, "deduplicated": not answered.won}
            if answered.outcome == "unknown":
                await require_job(session, job)
                raise Refused(f"{job} is retired: nothing of it is waited for")
            problem = f"{job}: {answered.detail}"
            raise NotDone(problem) if answered.outcome in AGAIN else Refused(problem)

    return run(work)
