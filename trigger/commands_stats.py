"""The commands about how runs change: stats, and deploy-marker for what was changed."""

import shutil
import sys
from typing import Annotated, Any

import typer

from shared.forecast import LEAST_RUNS
from shared.growth import told_duration, told_lag
from shared.masking import plain
from shared.terminal import Refused, checked_reason, operator, print_json, read_instant, run, settings_for, told
from shared.terminal_tables import print_line
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import Actor, AsJson
from trigger.deploy_marker import mark_deploy
from trigger.reach import reach
from trigger.stats import Stats, read_stats
from trigger.stats_chart import DRAWN, PLAIN, Chart

SHOWN = 30
MOST_SHOWN = 500
LONGEST_NAME = 100


def stats_command(
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job's name.")],
    *,
    last: Annotated[int, typer.Option("--last", min=1, max=MOST_SHOWN, help="How many runs to show.")] = SHOWN,
    as_json: AsJson = False,
) -> None:
    """Draw what a job's last runs took against the time to the next, the trend, and when the two meet.

    Each line is a scheduled run, with its lag (from when it was due to its claim) and attempts/wins. Between them stand
    the versions that began to run (see deploy-marker) and the job's own changes. Runs again, by hand and of backfills
    do not count. Trend and forecast are of the last 60 runs at least.
    """
    with told(PROGRAM):
        settings = settings_for("database_url")

        async def look() -> Stats:
            async with reach(settings) as session:
                return await read_stats(session, job, last)

        stats = run(look)
        if as_json:
            print_json(stats.as_json())
        else:
            print_stats(stats)


def print_stats(stats: Stats, width: int | None = None) -> None:
    """Print a job's runs, `width` letters wide; by default as wide as the terminal."""
    standing = f", {stats.standing}" if stats.standing else ""
    print_line(f"{stats.job}: {stats.schedule.description}{standing}", "bold")
    print_line(f"duration  {told_duration(stats.duration)}", "yellow" if stats.duration.soon else "")
    print_line(f"lag       {told_lag(stats.lag)}", "yellow" if stats.lag.grows else "")
    if not stats.runs:
        return
    count = len(stats.runs)
    each = f"{stats.attempts / count:.1f} attempts and {stats.wins / count:.1f} wins each"
    print_line(f"attempts  {stats.attempts} at {count} runs, {stats.wins} won: {each}")
    if stats.duration.runs < LEAST_RUNS:
        print_line(f"          growth is told from {LEAST_RUNS} runs on that went through")
    print_line()
    columns = width or shutil.get_terminal_size().columns
    signs = DRAWN if (sys.stdout.encoding or "").lower().startswith("utf") else PLAIN
    for line in Chart(stats, columns, signs).lines():
        print_line(line.text, line.style)


def deploy_marker_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What was deployed, as billing-api or postgres.")],
    *,
    version: Annotated[str, typer.Option("--version", help="The version that runs now.")],
    at: Annotated[
        str | None, typer.Option("--at", metavar="INSTANT", help="Since when; by default now, as the database has it.")
    ] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; kept for good.")] = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Mark that another version of something runs, so that `stats` shows it beside the runs.

    Triggers and workers mark their own at their start. Call this from the pipelines of other systems whose releases may
    change what jobs take: the services that they call, the database, the machines.
    """
    with told(PROGRAM):
        system, what = _checked("NAME", name), _checked("--version", version)
        instant = read_instant("--at", at) if at else None
        why = checked_reason(reason) if reason is not None else None
        settings = settings_for("database_url")

        async def mark() -> dict[str, Any]:
            async with reach(settings) as session:
                return await mark_deploy(session, system, what, instant, actor or operator(), why)

        marked = run(mark)
        if as_json:
            print_json(marked)
        else:
            print_line(f"marked: {marked['system']} {marked['version']} since {marked['at']:%Y-%m-%d %H:%M:%SZ}")


def _checked(place: str, text: str) -> str:
    """Give a name that can be kept. Raises Refused when it is empty or too long."""
    name = plain(text.strip(), 10 * LONGEST_NAME).replace("\n", " ")
    if not name or len(name) > LONGEST_NAME:
        problem = f"{place}: give 1 to {LONGEST_NAME} characters"
        raise Refused(problem)
    return name
