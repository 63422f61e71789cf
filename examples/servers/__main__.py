"""Run both servers until Ctrl-C.

With the argument `install`, only install what is missing on this machine; with `unpack`, unpack one of another release.
"""

import shlex
import signal
import sys
from contextlib import suppress
from pathlib import Path

from examples.servers.find import needed_packages, running_servers
from examples.servers.installer import install, packages_of_tests
from examples.servers.server import ServerUnavailableError
from examples.servers.unpack import PACKAGES, SUITES, unpack

USAGE = f"""usage: python -m examples.servers
       python -m examples.servers install
       python -m examples.servers unpack SUITE PACKAGE FOLDER

SUITE: a release of Debian, such as {", ".join(SUITES)}
PACKAGE: {" or ".join(PACKAGES)}
FOLDER: where it is unpacked, with all that it needs; MATINS_TEST_DATABASE_SERVER or MATINS_TEST_BROKER_SERVER then
        chooses it to serve"""


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
    """Run one of the three commands; give the exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        match arguments:
            case []:
                with suppress(KeyboardInterrupt):
                    run()
            case ["install"]:
                install([*needed_packages(), *packages_of_tests()])
            case ["unpack", suite, package, folder] if package in PACKAGES:
                unpack(suite, package, Path(folder))
            case _:
                print(USAGE, file=sys.stderr)
                return 2
    except ServerUnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
