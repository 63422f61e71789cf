"""The commands about alerts: alerts, alert, acknowledge, silence, unsilence."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shared.postgres import Session
from shared.terminal import REFUSED, Refused, print_json, read_instant, run, say, settings_for, told
from shared.terminal_tables import Times, print_line
from trigger.alert_standing import Reference, read_reference
from trigger.alerts import list_alerts, show_alert
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import Actor, Alerts, AsJson, Lasting, Reason, Until, Zone
from trigger.commands_order import order_of
from trigger.commands_print_alerts import print_alert, print_alerts
from trigger.ends import read_until
from trigger.reach import reach

if TYPE_CHECKING:
    from trigger.alert_orders import Acted

MOST_LISTED = 10_000


def alerts_command(
    *,
    closed_too: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    job: Annotated[str | None, typer.Option("--job", metavar="JOB", help="Of this job alone.")] = None,
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Of this kind; may be repeated.")] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="INSTANT", help="Opened at or after this.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST_LISTED)] = 50,
    zone: Zone = "UTC",
    as_json: AsJson = False,
) -> None:
    """List alerts: what should have happened and did not, and what is out of the ordinary; the worst and oldest first.

    An alert is opened once, by whoever sees it first, told, and told again until somebody has acknowledged it or it is
    over; then it closes by itself. `alert` shows one with its history and what to do; docs/runbook.md has an entry for
    each kind.
    """
    with told(PROGRAM):
        times, instant = Times(zone), read_instant("--since", since) if since else None
        settings = settings_for("database_url")

        async def look() -> tuple[list[dict[str, Any]], int]:
            async with reach(settings) as session:
                return await list_alerts(
                    session, job=job, kinds=kind or [], since=instant, closed_too=closed_too, limit=limit
                )

        found, count = run(look)
        if as_json:
            print_json({"found": count, "alerts": found})
            return
        print_alerts(found, times, empty="no alert" if closed_too else "no alert is open")
        if count > len(found):
            say(PROGRAM, f"{len(found)} of {count} are shown: --limit")


def alert_command(
    alert: Annotated[
        str, typer.Argument(metavar="ALERT", help="A number, or KIND:SUBJECT: the open one, or the last there was.")
    ],
    *,
    zone: Zone = "UTC",
    as_json: AsJson = False,
) -> None:
    """Show one alert: what was expected and what is known, what to do, who knows of it, and when it was told.

    Exit code 2 when there is none.
    """
    with told(PROGRAM):
        times, reference = Times(zone), read_reference(alert)
        settings = settings_for("database_url")

        async def look() -> dict[str, Any]:
            async with reach(settings) as session:
                return await show_alert(session, reference)

        shown = run(look)
        if as_json:
            print_json(shown)
        else:
            print_alert(shown, times)


def acknowledge_command(alert: Alerts, *, reason: Reason, actor: Actor = None, as_json: AsJson = False) -> None:
    """Say that somebody knows of alerts and sees to them: they are told no more, and `status` is well again.

    One that describes a condition stays open until that is over. One of what has happened for good (failed, partial,
    missed) is closed for it at the watch's next look. What comes after it, a re-run that fails too, is told anew. To
    acknowledge once more changes nothing.

    Exit code 2 when one is unknown, or is over; the others are acknowledged all the same.
    """
    from trigger.alert_orders import acknowledge  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order = order_of(actor, reason)
        _act(alert, lambda session, one: acknowledge(session, one, order), as_json=as_json)


def silence_command(
    alert: Alerts,
    *,
    until: Until = None,
    lasting: Lasting = None,
    reason: Reason,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Have alerts told to nobody for a time: a silence ends by itself, and what is not over then is told again.

    It is of these alerts alone: for what is to come, plan a `maintenance`. Until then `status` lists them, and is not
    unwell for them. It lasts 7 days at most, and takes the place of the silence before.

    Exit code 2 when one is unknown, over or acknowledged, or the end is none; the others are silenced all the same.
    """
    from trigger.alert_orders import silence  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order, end = order_of(actor, reason), read_until(until, lasting)
        _act(alert, lambda session, one: silence(session, one, end, order), as_json=as_json)


def unsilence_command(alert: Alerts, *, reason: Reason, actor: Actor = None, as_json: AsJson = False) -> None:
    """End a silence before its time: the alerts are told again at the watch's next look.

    Exit code 2 when one is unknown, or is over. One that is not silenced stays as it is.
    """
    from trigger.alert_orders import unsilence  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        order = order_of(actor, reason)
        _act(alert, lambda session, one: unsilence(session, one, order), as_json=as_json)


def _act(named: list[str], act: Callable[[Session, Reference], Awaitable["Acted"]], *, as_json: bool) -> None:
    """Act on each alert by itself; what is refused is told, and the others are done."""
    references = [read_reference(text) for text in dict.fromkeys(named)]
    settings = settings_for("environment", "database_url")
    refused: list[str] = []

    async def work() -> list["Acted"]:
        done = []
        async with reach(settings) as session:
            for reference in references:
                try:
                    done.append(await act(session, reference))
                except Refused as error:
                    refused.append(str(error))
        return done

    done = run(work)
    if as_json:
        print_json({"alerts": [_acted(one) for one in done], "refused": refused})
    for one in [] if as_json else done:
        print_line(one.said)
    for problem in refused:
        say(PROGRAM, problem)
    if refused:
        raise typer.Exit(REFUSED)


def _acted(one: "Acted") -> dict[str, str | int | bool | datetime | None]:
    standing = one.standing
    return {
        "alert": one.alert,
        "name": one.name,
        "changed": one.changed,
        "acknowledged_at": standing.acknowledged_at,
        "silenced_until": standing.silenced_until,
        "next_notice_at": standing.next_notice_at,
        "closed_at": standing.closed_at,
    }
