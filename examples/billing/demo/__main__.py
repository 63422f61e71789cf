"""`python -m examples.billing.demo [--stay] [--accounts N]`: exit code 0 if all went as promised, 1 if not."""

import argparse
import asyncio
import signal
import sys
from os import environ  # noqa: TID251 - the demo's own variable

from examples.billing.demo.screen import Screen
from examples.billing.demo.story import Interruption, tell
from examples.servers.find import Servers, running_servers
from examples.servers.server import ServerUnavailableError
from shared import clock
from shared.errors import MatinsError

ACCOUNTS_VARIABLE = "DEMO_ACCOUNTS"
USUAL_ACCOUNTS = 2000
FEWEST_ACCOUNTS = 100
INTERRUPTED = 130


def accounts(text: str) -> int:
    """Read a number of accounts. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < FEWEST_ACCOUNTS:
        raise argparse.ArgumentTypeError(f"a whole number from {FEWEST_ACCOUNTS}, not {text!r}")
    return int(text)


def arguments(given: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.billing.demo",
        description="A night of billing on this machine: a trigger and a worker are killed in the middle of it, every "
        "account is still done once, and what failed is named and run again.",
    )
    parser.add_argument("--stay", action="store_true", help="leave everything running at the end, until Ctrl-C")
    parser.add_argument(
        "--accounts",
        type=accounts,
        default=environ.get(ACCOUNTS_VARIABLE) or str(USUAL_ACCOUNTS),
        help=f"how many (by default {ACCOUNTS_VARIABLE}, else {USUAL_ACCOUNTS})",
    )
    return parser.parse_args(given)


async def run(screen: Screen, servers: Servers, chosen: argparse.Namespace) -> None:
    """Tell the story so that Ctrl-C and SIGTERM end it in order."""
    interruption = Interruption(asyncio.current_task())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interruption.interrupt)
    await tell(screen, servers, chosen.accounts, interruption if chosen.stay else None)


def main(given: list[str]) -> int:
    """Run the demo; give the exit code."""
    chosen = arguments(given)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    screen = Screen()
    began = clock.monotonic()
    try:
        screen.heading("Servers")
        with running_servers(install_missing=True) as servers:
            screen.fact("PostgreSQL", servers.database_url)
            screen.fact("RabbitMQ", servers.broker.url)
            screen.fact("management", servers.broker.management_url or "not known")
            asyncio.run(run(screen, servers, chosen))
    except (KeyboardInterrupt, asyncio.CancelledError):
        screen.say("interrupted")
        return INTERRUPTED
    except (MatinsError, ServerUnavailableError) as error:
        screen.incident(f"the demo failed: {error}")
        return 1
    screen.heading(f"{len(screen.failed)} checks FAILED" if screen.failed else "Everything held")
    screen.say(f"{clock.monotonic() - began:.0f} s")
    return 1 if screen.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
