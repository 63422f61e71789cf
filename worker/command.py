"""The worker's commands. Exit codes: 0 done, 1 failed, 2 refused for what was asked or set."""

from typing import Annotated

import anyio
import typer

from shared.lifecycle import leave
from shared.start import prepare
from shared.terminal import told
from shared.version import VERSION
from worker.commands_try import try_command
from worker.service import serve

application = typer.Typer(
    name="worker",
    help="The worker runs the accounts of occurrences. All settings come from MATINS_… variables; see the README.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if wanted:
        typer.echo(VERSION)
        raise typer.Exit


@application.callback()
def worker(
    _version_wanted: Annotated[  # noqa: FBT002 - typer reads the default of an option here
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the release and end.")
    ] = False,
) -> None:
    """Take the options that come before a command."""


@application.command(name="serve")
def serve_command() -> None:
    """Consume and run until SIGTERM; then drain within MATINS_GRACE_PERIOD and exit 0. A second signal ends at once."""
    with told("worker"):
        leave(anyio.run(serve, prepare("worker")))


application.command(
    name="try",
    epilog="Examples:\n\npython -m worker try invoice-run --account 4711 --dry-run --twice\n\n"
    "python -m worker try charge --account 4711 --yes",
)(try_command)


def main() -> None:
    """Run the command line."""
    application()
