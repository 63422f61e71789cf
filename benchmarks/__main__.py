"""How fast accounts are done, beside a peer on the same servers.

Without an option: every shape and the peer, in BENCH_ROUNDS (3) rounds of BENCH_ACCOUNTS (10,000) accounts, or a
multiple of that where a shape is faster; prints a table and writes build/bench.json.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks import console, memory, profiles, throughput, volume, watch
from benchmarks.rounds import CONTESTANTS, Contestant

SHAPES = {one.key: one for one in CONTESTANTS if one.job}
MEMORY_ACCOUNTS = 10
CONSOLE_ACCOUNTS = 100


def main(arguments: list[str]) -> int:
    """Run what is asked for; give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--only", nargs="+", choices=[one.key for one in CONTESTANTS], help="only these contestants")
    asked.add_argument("--memory", nargs="?", const="one_account_batched", choices=SHAPES, help="memory, rate by tenth")
    asked.add_argument("--bytes", action="store_true", help="log bytes and statements of a million accounts")
    asked.add_argument("--profile", choices=SHAPES, help="where the time of a shape goes")
    asked.add_argument("--watch", action="store_true", help="a pass of the watch over as many jobs as BENCH_ACCOUNTS")
    asked.add_argument(
        "--console", action="store_true", help="the console's pages, while 100 times BENCH_ACCOUNTS accounts run"
    )
    options = parser.parse_args(arguments)
    accounts, rounds = int(os.environ.get("BENCH_ACCOUNTS", "10000")), int(os.environ.get("BENCH_ROUNDS", "3"))
    with tempfile.TemporaryDirectory(prefix="matins-bench-") as name:
        folder = Path(name)
        if options.memory:
            memory.run(SHAPES[options.memory], accounts * MEMORY_ACCOUNTS, folder)
        elif options.bytes:
            volume.run(accounts, folder)
        elif options.watch:
            watch.run(accounts)
        elif options.console:
            console.run(accounts * CONSOLE_ACCOUNTS)
        elif options.profile:
            profiled: Contestant = SHAPES[options.profile]
            profiles.run(profiled, profiled.accounts(accounts), folder)
        else:
            throughput.run(accounts, rounds, folder, options.only)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
