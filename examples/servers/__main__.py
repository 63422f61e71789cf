"""Run both servers until Ctrl-C; with the argument `install`, only install what is missing on this machine."""

import shlex
import signal
import sys
from contextlib import suppress

from examples.servers.find import needed_packages, running_servers
from examples.servers.installer import install
from examples.servers.server import ServerUnavailableError


def run() -> None:
    """Start both servers, print lines for other terminals to export, and keep them until interrupted or terminated."""
    with running_servers(install_missing=True) as servers:
        print(f"export MATINS_DATABASE_URL={shlex.quote(servers.database_url)}")
        print(f"export MATINS_BROKER_URL={shlex.quote(servers.broker.url)}")
        if servers.broker.management_url:
            print(f"export MATINS_MANAGEMENT_URL={shlex.quote(servers.broker.management_url)}")
        print("# Ctrl-C ends both servers.", flush=True)
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
