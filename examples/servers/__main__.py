"""Run both servers until Ctrl-C; with the argument `install`, only install what is missing on this machine."""

import signal
import sys
from contextlib import suppress

from examples.servers.find import needed_packages, running_servers
from examples.servers.installer import install
from examples.servers.server import ServerUnavailableError


def run() -> None:
    """Start both servers, print their addresses, and keep them until interrupted or terminated."""
    with running_servers(install_missing=True) as servers:
        print(f"PostgreSQL: {servers.database_url}")
        print(f"RabbitMQ:   {servers.broker.url}")
        print(f"Management: {servers.broker.management_url or 'not given'}")
        print("Ctrl-C ends them.", flush=True)
        signal.pause()


def main(arguments: list[str]) -> int:
    """Run one of the two commands; give the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        match arguments:
            case []:
                with suppress(KeyboardInterrupt):
                    run()
            case ["install"]:
                install(needed_packages())
            case _:
                print("usage: python -m examples.servers [install]", file=sys.stderr)
                return 2
    except ServerUnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
