"""The command `console`: the pages alone, without a trigger around them."""

import socket
from dataclasses import replace
from typing import Annotated

import anyio
import typer
from anyio.abc import TaskGroup

from shared.postgres import Database
from shared.setting_pairs import console_problem
from shared.setting_values import OFF, console_address
from shared.settings import Settings
from shared.stopping import Stopping
from shared.terminal import Refused, run, settings_for, told
from shared.version import VERSION
from trigger.commands_deploy import PROGRAM
from trigger.reach import reach

DEFAULT = "127.0.0.1:8082"


def console_command(
    *,
    address: Annotated[
        str | None,
        typer.Option("--address", metavar="HOST:PORT", help=f"By default MATINS_CONSOLE_ADDRESS, else {DEFAULT}."),
    ] = None,
) -> None:
    """Serve the console alone until Ctrl-C or SIGTERM, as triggers with MATINS_CONSOLE_ADDRESS do beside their work.

    A login that may only read, of `matins_reader`, is enough to look. Where people sign in (MATINS_CONSOLE_ACCESS) it
    needs one of `matins_trigger`.
    """
    from shared import logs  # noqa: PLC0415 - a command loads only what it uses
    from shared.lifecycle import instance_id, leave, run_service, start_part  # noqa: PLC0415 - it is slow to load
    from trigger.console.server import DATABASE_CONNECTIONS, Console  # noqa: PLC0415 - it is slow to load

    with told(PROGRAM):
        settings = _settings(address)
        run(lambda: _see(settings))
        logs.configure(settings.log_level, settings.log_layout, service="matins-console", instance=instance_id())
        database = Database(
            lambda: settings.secret("database_url"),
            name=f"matins console {VERSION}",
            size=DATABASE_CONNECTIONS,
            timeout=settings.database_timeout,
            statement_cache_size=settings.statement_cache_size,
        )
        console = Console(settings, database, instance_id(), socket.gethostname())

        async def start(group: TaskGroup, stopping: Stopping) -> None:
            start_part(group, stopping, "console", lambda: console.serve(stopping))
            await stopping.wait()

        leave(anyio.run(lambda: run_service("console", start, grace_period=settings.grace_period)))


def _settings(address: str | None) -> Settings:
    settings = settings_for("database_url")
    if address is None and settings.console_address != OFF:
        return settings
    try:
        wanted = console_address(address or DEFAULT)
    except ValueError as error:
        problem = f"--address: valid is {error}"
        raise Refused(problem) from None
    if problem := console_problem(wanted, signs_in=bool(settings.console_access)):
        raise Refused(f"--address: valid is {problem}")
    return replace(settings, console_address=wanted)


async def _see(settings: Settings) -> None:
    """See that the database is there, and is the right one; and that sessions can be kept where people sign in."""
    from trigger.console.sessions import see_sessions  # noqa: PLC0415 - a command loads only what it uses

    async with reach(settings) as session:
        if settings.console_access:
            await see_sessions(session)
