"""The command `try`."""

import contextlib
import sys
from datetime import datetime
from typing import Annotated, Any

import typer

from shared.job import Job, Outside
from shared.load import load_jobs
from shared.packages import check_packages
from shared.settings import Settings
from shared.terminal import FAILED, NotDone, Refused, confirm, print_json, read_instant, run, settings_for, told
from shared.terminal_tables import print_line, show_seconds
from worker.invoke import Function
from worker.outcome import Result
from worker.resolve import resolve
from worker.savepoints import CommitFailed
from worker.trial import OneRun, Trial, latest_due, try_account

PROGRAM = "worker"


def try_command(
    job: Annotated[str, typer.Argument(metavar="JOB", help="A declared job.")],
    *,
    account: Annotated[str, typer.Option("--account", help="The account to run.")],
    at: Annotated[
        str | None, typer.Option("--at", metavar="INSTANT", help="Due at; by default the latest due instant.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Roll everything back; not for effects outside the database.")
    ] = False,
    twice: Annotated[
        bool, typer.Option("--twice", help="Run it a second time, and say what the second run changed.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask before an effect that is kept.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, instants in UTC.")] = False,
) -> None:
    """Run one account of a job by hand, in the ordinary way of its handler; no ledger row, no broker.

    Exit code 1 when it failed, or when a second run changed something: then nothing is kept in the database.
    """
    with told(PROGRAM):
        declared, function = _resolved(job)
        if dry_run and isinstance(declared.handler, Outside):
            problem = f"{job} has its effect outside the database, and that cannot be rolled back: leave --dry-run out"
            raise Refused(problem)
        settings = settings_for("jobs", *(() if isinstance(declared.handler, Outside) else ("database_url",)))
        instant = _whole(read_instant("--at", at)) if at else latest_due(declared)
        if not dry_run:
            confirm(f"The effect of {job} for account {account!r} will be real. Go on?", yes=yes)
        trial = run(lambda: _tried(settings, declared, function, account, instant, dry_run=dry_run, twice=twice))
        if as_json:
            print_json(_as_json(trial, account))
        else:
            _print(trial, account)
        if not trial.good:
            raise typer.Exit(FAILED)


async def _tried(
    settings: Settings, job: Job, function: Function, account: str, at: datetime, *, dry_run: bool, twice: bool
) -> Trial:
    try:
        return await try_account(settings, job, function, account, at, dry_run=dry_run, twice=twice)
    except CommitFailed as error:
        raise NotDone(str(error)) from error


def _resolved(name: str) -> tuple[Job, Function]:
    """Load the job and its code. Raises Refused when either cannot be had."""
    check_packages()
    with contextlib.redirect_stdout(sys.stderr):
        loaded = load_jobs(settings_for("jobs").jobs)
        if name not in loaded.jobs:
            faults = [str(fault) for fault in loaded.faults]
            known = ", ".join(sorted(loaded.jobs)) or "none"
            raise Refused("\n".join([f"there is no sound job {name[:80]!r}; declared: {known}", *faults]))
        resolved = resolve({name: loaded.jobs[name]})
    if name in resolved.problems:
        raise Refused(f"the handler of {name} cannot be called: {resolved.problems[name]}")
    return loaded.jobs[name], resolved.functions[name]


def _whole(instant: datetime) -> datetime:
    return instant.replace(microsecond=0)


def _as_json(trial: Trial, account: str) -> dict[str, Any]:
    return {
        "occurrence": str(trial.occurrence),
        "window": {"since": trial.window.since, "until": trial.window.until},
        "account": account,
        "key": trial.key,
        "good": trial.good,
        "kept": trial.kept,
        "second_run_changed": trial.differs or None,
        "runs": [
            {
                "result": one.outcome.result,
                "error_class": one.outcome.error_class,
                "error": one.outcome.error,
                "next_try_after_seconds": _wait(one),
                "seconds": one.seconds,
                "wrote": one.wrote,
                "value": one.value,
            }
            for one in trial.runs
        ],
    }


def _print(trial: Trial, account: str) -> None:
    print_line(f"{trial.occurrence}, account {account!r}, key {trial.key}", "bold")
    for number, one in enumerate(trial.runs, start=1):
        print_line(f"run {number}: {_said(one)}", "green" if one.good else "red")
        for table, counts in one.wrote.items():
            print_line(f"  {table}: {', '.join(f'{count} {name}' for name, count in counts.items())}")
    if trial.differs:
        print_line(f"the second run changed something: {trial.differs}", "red")
    elif len(trial.runs) > 1 and trial.good:
        print_line("the second run changed nothing", "green")
    if trial.kept is not None:
        print_line("kept" if trial.kept else "nothing was kept")


def _said(one: OneRun) -> str:
    took = f"in {show_seconds(one.seconds)}"
    if one.good:
        value = f", value {one.value!r}" if one.value is not None else ""
        return f"{one.outcome.result} {took}{value}"
    after = f"; a worker would try again after {show_seconds(_wait(one))}" if _wait(one) is not None else ""
    return f"failed {took}: {one.outcome.error_class}: {one.outcome.error}{after}"


def _wait(one: OneRun) -> float | None:
    return one.outcome.wait.total_seconds() if one.outcome.result is Result.RETRY else None
