"""The command about telling people: which channels there are, how they fare, and a test message through each."""

from typing import Annotated, Any

import typer

from shared.channels import Channel, Ping, read_channels
from shared.settings import Settings
from shared.terminal import FAILED, Refused, print_json, run, settings_for, told
from shared.terminal_tables import Times, print_line, print_table
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import AsJson, Zone
from trigger.reach import reach


def notify_command(
    *,
    test: Annotated[bool, typer.Option("--test", help="Send a test message, and tell how it went.")] = False,
    channel: Annotated[
        str | None, typer.Option("--channel", metavar="NAME", help="With --test: this channel alone.")
    ] = None,
    zone: Zone = "UTC",
    as_json: AsJson = False,
) -> None:
    """List the channels that alerts are told through, and the messages that wait or were given up.

    With --test, send a message through each channel of MATINS_CHANNELS as it is set here; the database is not asked.
    Exit code 1 when a test fails, when messages wait for more than two minutes, or when some were given up.
    """
    with told(PROGRAM):
        if channel is not None and not test:
            raise Refused("--channel goes with --test")
        if test:
            _test(channel, as_json=as_json)
        else:
            _list(Times(zone), as_json=as_json)


def _test(name: str | None, *, as_json: bool) -> None:
    from trigger.notifications import try_channels  # noqa: PLC0415 - a command loads only what it uses

    settings = settings_for("environment")
    channels = _declared(settings)
    if name is not None and name not in channels:
        raise Refused(f"there is no channel {name[:80]!r}; MATINS_CHANNELS has {', '.join(channels)}")
    chosen = [one for one in channels.values() if name in {None, one.name}]

    async def act() -> dict[str, str]:
        return await try_channels(chosen, settings.environment)

    outcomes = run(act)
    if as_json:
        print_json(
            [{"channel": name, "delivered": not error, "error": error or None} for name, error in outcomes.items()]
        )
    else:
        rows = [(name, channels[name].kind, error or "delivered") for name, error in outcomes.items()]
        print_table("", ("channel", "kind", "outcome"), rows)
    if any(outcomes.values()):
        raise typer.Exit(FAILED)


def _list(times: Times, *, as_json: bool) -> None:
    from trigger.notifications import channel_states, undelivered  # noqa: PLC0415 - a command loads only what it uses

    settings = settings_for("database_url")
    declared = _declared(settings)

    async def look() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        async with reach(settings) as session:
            return await channel_states(session), await undelivered(session)

    states, messages = run(look)
    known = {one["name"]: one for one in states}
    channels = [_channel(name, declared.get(name), known.get(name)) for name in sorted({*declared, *known})]
    if as_json:
        print_json({"channels": channels, "undelivered": messages})
    else:
        _print(channels, messages, times)
    if any(one["late"] or one["given_up"] for one in channels):
        raise typer.Exit(FAILED)


def _declared(settings: Settings) -> dict[str, Channel]:
    return {one.name: one for one in read_channels(settings.secret("channels"))}


def _channel(name: str, declared: Channel | None, state: dict[str, Any] | None) -> dict[str, Any]:
    """Describe a channel: as it is declared here, and as the fleet has used it."""
    told_of = (
        {} if declared is None else {what: sorted(getattr(declared, what)) for what in ("severities", "kinds", "jobs")}
    )
    if declared is not None and isinstance(declared.target, Ping) and declared.target.job:
        told_of = {"jobs": [declared.target.job]}
    fares = ("waiting", "since", "late", "error", "given_up", "given_up_at", "given_up_error", "delivered_at")
    return {
        "channel": name,
        "kind": declared.kind if declared else None,
        "declared_here": declared is not None,
        "told": {what: chosen for what, chosen in told_of.items() if chosen},
        **{what: state[what] if state else None for what in fares},
    }


def _told_of(one: dict[str, Any]) -> str:
    """Say which alerts a channel is told; a switch outside hears of looks or runs, and of no alert."""
    if one["kind"] == "ping":
        return f"the runs of {', '.join(one['told']['jobs'])}" if one["told"] else "that the watch looks"
    return "; ".join(f"{what} {', '.join(chosen)}" for what, chosen in one["told"].items()) or "everything"


def _print(channels: list[dict[str, Any]], messages: list[dict[str, Any]], times: Times) -> None:
    rows = [
        (
            one["channel"],
            one["kind"] or "not declared here",
            _told_of(one),
            one["waiting"],
            one["given_up"],
            times.show(one["delivered_at"]),
        )
        for one in channels
    ]
    print_table("Channels", ("channel", "kind", "is told", "waiting", "given up", "last delivered"), rows)
    waiting = [
        (
            one["channel"],
            f"{one['event']} {one['kind'] or ''} {one['subject'] or ''}",
            one["state"].replace("_", " "),
            times.show(one["created_at"]),
            one["attempts"],
            times.show(one["not_before"]) if one["state"] == "waiting" else None,
            one["error"],
        )
        for one in messages
    ]
    headings = ("channel", "message", "state", "since", "attempts", "next", "error")
    print_table("Undelivered", headings, waiting)
    if not waiting:
        print_line("everything was delivered", "green")
