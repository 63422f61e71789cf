"""What a trigger answers to: outside schedulers and check-ins, and whoever looks at its console."""

from collections.abc import Awaitable, Callable

from anyio.abc import TaskGroup

from shared.health import Health
from shared.lifecycle import start_part
from shared.postgres import Session
from shared.start import Prepared
from shared.stopping import Stopping


def start_endpoints(
    work: TaskGroup,
    stopping: Stopping,
    prepared: Prepared,
    health: Health,
    examine: Callable[[Session], Awaitable[None]],
) -> None:
    """Start what the settings ask for, in threads of their own; `examine` sees each new connection to the database."""
    from trigger.api import Api  # noqa: PLC0415 - it takes long to load, and most processes answer nobody
    from trigger.console.server import DATABASE_CONNECTIONS, Console, is_wanted  # noqa: PLC0415 - it is slow to load

    api = Api(prepared, health, examine)
    if api.wanted:
        start_part(work, stopping, "endpoint", lambda: api.serve(stopping))
    if is_wanted(prepared.settings):
        database, instance = prepared.database(DATABASE_CONNECTIONS), prepared.instance
        database.examine_new(examine)
        console = Console(prepared.settings, database, instance.id, instance.host)
        health.part("console", lambda: console.problem)
        start_part(work, stopping, "console", lambda: console.serve(stopping))
