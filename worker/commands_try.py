"""The command `try`."""

import contextlib
import sys
from datetime import datetime
from typing import Annotated, Any

import typer

from shared.job import EveryWorker, Job, Outside
from shared.lifecycle import instance_id
from shared.load import load_jobs
from shared.packages import check_packages
from shared.settings import Settings
from shared.terminal import (
    FAILED,
    NotDone,
    Refused,
    confirm,
    operator,
    print_json,
    read_instant,
    run,
    settings_for,
    told,
)
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
    account: Annotated[
        str | None, typer.Option("--account", help="The account to run; none for what every worker runs for itself.")
    ] = None,
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

    Exit code 1 when it failed, or when a second run changed something: then nothing is kept in the database. What every
    worker runs for itself needs the record of a --twice (with --dry-run, too) in which the second run changed nothing.
    """
    with told(PROGRAM):
        declared, function = _resolved(job)
        _refuse_account(declared, account, dry_run=dry_run)
        settings = settings_for("jobs", *(() if isinstance(declared.handler, Outside) else ("database_url",)))
        instant = _whole(read_instant("--at", at)) if at else latest_due(declared)
        if not dry_run:
            confirm(f"The effect of {job}{_for(account)} will be real. Go on?", yes=yes)
        # What every worker runs for itself has the process for its account.
        run_for = account or instance_id()
        trial = run(lambda: _tried(settings, declared, function, run_for, instant, dry_run=dry_run, twice=twice))
        if as_json:
            print_json(_as_json(trial, account))
        else:
            _print(trial, account)
        if not trial.good:
            raise typer.Exit(FAILED)


def _for(account: str | None) -> str:
    return "" if account is None else f" for account {account!r}"


async def _tried(
    settings: Settings, job: Job, function: Function, account: str, at: datetime, *, dry_run: bool, twice: bool
) -> Trial:
    try:
        return await try_account(settings, job, function, account, at, dry_run=dry_run, twice=twice, actor=operator())
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
        if loaded.jobs[name].coordination == "elsewhere":
            raise Refused(f"{name} runs elsewhere: there is no code of it to try here")
        resolved = resolve({name: loaded.jobs[name]})
    if name in resolved.problems:
        raise Refused(f"the handler of {name} cannot be called: {resolved.problems[name]}")
    return loaded.jobs[name], resolved.functions[name]


def _refuse_account(job: Job, given: str | None, *, dry_run: bool) -> None:
    """Raise Refused when an account is missing, or given where there are none, or cannot be dry."""
    if dry_run and isinstance(job.handler, Outside):
        problem = f"{job.name} has its effect outside the database, and that cannot be rolled back: leave --dry-run out"
        raise Refused(problem)
    if isinstance(job.handler, EveryWorker):
        if given is not None:
            raise Refused(f"{job.name} has no accounts, every worker runs it for itself: leave --account out")
    elif given is None:
        raise Refused(f"{job.name} is run for each account: name one with --account")


def _whole(instant: datetime) -> datetime:
    return instant.replace(microsecond=0)


def _as_json(trial: Trial, account: str | None) -> dict[str, Any]:
    return {
        "occurrence": str(trial.occurrence),
        "window": {"since": trial.window.since, "until": trial.window.until},
        "account": account,
        "key": None if account is None else trial.key,
        "good": trial.good,
        "kept": trial.kept,
        "second_run_changed": trial.differs or None,
        "recorded": trial.recorded,
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


def _print(trial: Trial, account: str | None) -> None:
    whom = f"account {account!r}, key {trial.key}" if account is not None else "run by this process for itself"
    print_line(f"{trial.occurrence}, {whom}", "bold")
    for number, one in enumerate(trial.runs, start=1):
        print_line(f"run {number}: {_said(one)}", "green" if one.good else "red")
        for table, counts in one.wrote.items():
            print_line(f"  {table}: {', '.join(f'{count} {name}' for name, count in counts.items())}")
    if trial.differs:
        print_line(f"the second run changed something: {trial.differs}", "red")
    elif len(trial.runs) > 1 and trial.good:
        print_line("the second run changed nothing", "green")
    if trial.recorded:
        print_line("recorded: workers may run this code for themselves", "green")
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
