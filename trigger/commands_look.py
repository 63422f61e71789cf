"""The commands that look at what is recorded: status, occurrences, show."""

from typing import Annotated, Any

import typer

from schemas.states import AccountState, OccurrenceState
from shared.postgres import DatabaseError, DatabaseUnavailable, DriverError
from shared.terminal import (
    FAILED,
    REFUSED,
    end,
    print_json,
    read_instant,
    run,
    settings_for,
    told,
)
from shared.terminal_tables import Times, print_line, print_table, show_seconds
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import AsJson, Written, Zone
from trigger.commands_print import print_accounts, print_occurrence, print_status
from trigger.reach import reach, read_identity
from trigger.show import list_accounts, list_occurrences, show_occurrence
from trigger.status import DAYS, Status, read_status

MOST_LISTED = 10_000


def status_command(
    *,
    days: Annotated[
        int, typer.Option("--days", min=0, max=3650, help="How far back to look; 0: each job's last occurrence alone.")
    ] = DAYS,
    zone: Zone = "UTC",
    as_json: AsJson = False,
) -> None:
    """Show on one screen whether all is well: jobs, what runs, live processes, queues, open alerts.

    Exit code 0: all is well. 1, not well: an occurrence of the last days failed, is partial or was missed, and no
    re-run has mended it, nor has anybody acknowledged its alert; an alert is open that nobody has acknowledged or
    silenced, and that is of no planned maintenance; one is late, or not finished in time; no trigger or no worker is
    live; a queue is missing; no live worker may run what each runs for itself. 2: cannot tell, since the database or
    the broker cannot be asked, and nothing else is known to be wrong.
    """
    with told(PROGRAM):
        times = Times(zone)
        settings = settings_for("database_url")

        async def look() -> Status:
            async with reach(settings) as session:
                return await read_status(session, settings, days)

        try:
            status = run(look)
        except (DatabaseError, DriverError, DatabaseUnavailable, OSError) as error:
            end(PROGRAM, f"cannot tell: {error}", REFUSED)
        if as_json:
            seen = ("jobs", "running", "instances", "queues", "unmended", "alerts", "maintenance")
            names = (*seen, "problems", "unseen")
            print_json({"well": status.well, **{name: getattr(status, name) for name in names}})
        else:
            print_status(status, times)
        if not status.well:
            raise typer.Exit(FAILED if status.problems else REFUSED)


def occurrences_command(
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="Of this job alone.")] = None,
    *,
    state: Annotated[
        list[OccurrenceState] | None, typer.Option("--state", help="In this state; may be repeated.")
    ] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="INSTANT", help="Due at or after this.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST_LISTED)] = 20,
    zone: Zone = "UTC",
    as_json: AsJson = False,
) -> None:
    """List occurrences, the latest first; those that are still to come only with --state expected."""
    with told(PROGRAM):
        times = Times(zone)
        instant = read_instant("--since", since) if since else None
        settings = settings_for("database_url")

        async def look() -> list[dict[str, Any]]:
            async with reach(settings) as session:
                return await list_occurrences(session, job, [one.value for one in state or []], instant, limit)

        found = run(look)
        if as_json:
            print_json(found)
            return
        headings = ("occurrence", "state", "accounts", "succeeded", "failed", "dead", "cancelled", "took", "closed")
        print_table("", headings, [_listed(one, times) for one in found], empty="no occurrence")


def show_command(
    occurrence: Written,
    *,
    accounts: Annotated[
        list[AccountState] | None, typer.Option("--accounts", help="List the accounts in this state; may be repeated.")
    ] = None,
    after: Annotated[str | None, typer.Option("--after", metavar="ACCOUNT", help="Go on behind this account.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST_LISTED, help="Accounts of a page.")] = 50,
    zone: Zone = "UTC",
    as_json: AsJson = False,
) -> None:
    """Show one occurrence: progress, counts, errors with examples, durations, generations, alerts, attempts, events."""
    with told(PROGRAM):
        times = Times(zone)
        identity = read_identity(occurrence)
        settings = settings_for("database_url")
        states = [one.value for one in accounts or []]

        async def look() -> dict[str, Any]:
            async with reach(settings) as session:
                shown = await show_occurrence(session, identity)
                if states:
                    shown["accounts"] = await list_accounts(session, identity, states, after, limit)
                return shown

        shown = run(look)
        if as_json:
            print_json(shown)
            return
        if not states:
            print_occurrence(shown, times)
            return
        print_line(f"{shown['occurrence']}: {shown['state']}", "bold")
        print_accounts(shown["accounts"], times)


def _listed(one: dict[str, Any], times: Times) -> tuple[object, ...]:
    closed = one["closed_at"] is not None
    counts = [one[name] if closed else None for name in ("succeeded", "failed", "dead", "cancelled")]
    accounts = one["total"] if closed else one["accounts_read"] or None
    ended = times.show(one["closed_at"]) if closed else one["reason"]
    return (one["occurrence"], one["state"], accounts, *counts, show_seconds(one["seconds"]), ended)
