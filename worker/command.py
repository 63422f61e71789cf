"""The worker's commands. Exit codes: 0 done, 1 failed, 2 refused for what was asked or set."""

import anyio

from shared.lifecycle import leave
from shared.start import prepare
from shared.terminal import told
from shared.terminal_application import Command, command_line
from worker.commands_try import try_command
from worker.service import serve


def serve_command() -> None:
    """Consume and run until SIGTERM; then drain within MATINS_GRACE_PERIOD and exit 0. A second signal ends at once."""
    with told("worker"):
        leave(anyio.run(serve, prepare("worker")))


_COMMANDS: tuple[Command, ...] = (
    ("serve", serve_command, ("serve",)),
    ("try", try_command, ("try invoice-run --account 4711 --dry-run --twice", "try charge --account 4711 --yes")),
)

application = command_line("worker", "The worker runs the accounts of occurrences.", _COMMANDS)


def main() -> None:
    """Run the command line."""
    application()
