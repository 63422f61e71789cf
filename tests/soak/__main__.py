"""`python -m tests.soak`: exit code 0 if nothing was violated, 1 if something was, 2 for a wrong command line."""

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import orjson

from examples.servers.server import ServerUnavailableError
from tests.soak.plan import segments
from tests.soak.run import Outcome, soak

INTERRUPTED = 130
EPILOG = """\
The schedule of faults (what, when, whom) follows from the seed alone; --plan prints it. What the machine makes of it
does not: two runs of a seed disturb in the same way, and meet different processes at different steps.

After each segment of 35 to 60 s nothing is disturbed until everything has come to rest (within 120 s), and the
checker judges. The run ends at the first violation: it prints the rule, what breaks it, the last events and the seed,
and keeps the folder with the logs of every process, the jobs' module and journal.jsonl, which holds what was planned
and what came of it.
"""


def seconds(text: str) -> float:
    """Read a length. Raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value <= 7 * 86400:
        raise argparse.ArgumentTypeError(f"a number of seconds from 1 to 604800, not {text!r}")
    return value


def arguments(given: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description="Random faults against a fleet of real processes on private servers: killed, frozen, redeployed; "
        "broker and database stopped, wiped, cut off; operators at work meanwhile. A checker judges at quiet points.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=seconds, default=600, help="how long to disturb (600); ends at a quiet point")
    parser.add_argument("--seed", type=int, help="a whole number; by default a new one, which is printed")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--plan", type=int, metavar="SEGMENTS", help="only print the seed's first events, a line each")
    parser.add_argument("--keep", action="store_true", help="keep the logs also when all went well")
    parser.add_argument("--folder", type=Path, help="an empty folder for the logs; by default a temporary one")
    return parser.parse_args(given)


def print_plan(seed: int, number: int) -> None:
    """Print the first segments of a seed's schedule as JSON lines."""
    for segment in segments(seed):
        if segment.number == number:
            return
        for event in segment.events:
            print(orjson.dumps(event.as_record(segment.number)).decode())


def tell(text: str) -> None:
    """Show a line of progress: over the one before on a terminal, below it elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text[:118]}", end="", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)


def report(outcome: Outcome, *, as_json: bool) -> None:
    """Print what was found."""
    if as_json:
        print(orjson.dumps(outcome.summary, option=orjson.OPT_INDENT_2, default=str).decode())
    else:
        for name, value in outcome.summary.items():
            if name not in {"violations", "counted"}:
                print(f"{name}: {orjson.dumps(value, default=str).decode() if isinstance(value, dict) else value}")
    if not outcome.violations:
        print("no rule violated", file=sys.stderr)
        return
    print(f"\n{len(outcome.violations)} rules VIOLATED, with the seed {outcome.seed}", file=sys.stderr)
    for one in outcome.violations:
        print(orjson.dumps(one, option=orjson.OPT_INDENT_2, default=str).decode(), file=sys.stderr)
    print("The last events:", *outcome.recent, f"Logs and journal: {outcome.folder}", sep="\n", file=sys.stderr)


def main(given: list[str]) -> int:
    """Run the soak; give the exit code."""
    chosen = arguments(given)
    seed = random.SystemRandom().randrange(1_000_000) if chosen.seed is None else chosen.seed
    if chosen.plan is not None:
        print_plan(seed, chosen.plan)
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="matins-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, {chosen.seconds:g} s, logs in {folder}", file=sys.stderr, flush=True)
    try:
        outcome = asyncio.run(soak(seed, chosen.seconds, folder, tell))
    except KeyboardInterrupt:
        print(f"\ninterrupted; logs in {folder}", file=sys.stderr)
        return INTERRUPTED
    except ServerUnavailableError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    report(outcome, as_json=chosen.json)
    if not outcome.violations and not chosen.keep and chosen.folder is None:
        shutil.rmtree(folder)
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
