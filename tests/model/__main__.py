"""Run the model for many seeds, and say how many crashes fell on each arrow of the protocol.

`python -m tests.model --runs 300 --seed 1` needs a PostgreSQL: MATINS_TEST_DATABASE_URL, a Docker engine or local
programs, as the tests do. With `--crashes 100` the arrow with the fewest crashes is hunted next, until each has 100.

Exit code 1 where a run breaks a promise; it names the kind of run and the seed. The same arguments with `--runs 1` and
that seed, and `--trace`, show that run step by step.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import structlog

from examples.servers.find import running_postgres
from tests.model.arrows import by_arrow
from tests.model.database import Server, model_server
from tests.model.profile import HUNTED_IN, PROFILES, Profile, hunting
from tests.model.world import World

PROGRESS_EVERY = 50


def _arguments() -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__, formatter_class=form)
    parser.add_argument("--runs", type=int, default=len(PROFILES), help="how many runs (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the first run's seed; each run has the next one")
    parser.add_argument("--profile", choices=PROFILES, help="only this kind of run (default: each in turn)")
    parser.add_argument("--hunt", choices=HUNTED_IN, help="only runs in which the crashes of this arrow are hunted")
    parser.add_argument("--crashes", type=int, default=0, help="after --runs, hunt until each arrow has so many")
    parser.add_argument("--trace", action="store_true", help="write every step that was taken")
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    return parser.parse_args()


@dataclass(slots=True)
class Tally:
    """What all runs did."""

    server: Server
    trace: bool
    runs: int = 0
    crashes: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    broken: list[dict[str, Any]] = field(default_factory=list)

    async def run(self, name: str, profile: Profile, seed: int) -> None:
        """Run once."""
        world = World(self.server, profile, seed)
        violations = await world.run()
        self.runs += 1
        self.crashes.update(world.crashes)
        self.events.update(world.watch.events)
        self.broken += [{"run": name, "seed": seed, "violation": one} for one in violations]
        if self.trace:
            sys.stdout.write("\n".join(world.trace) + "\n")

    def as_json(self) -> dict[str, Any]:
        """Give it all."""
        return {"runs": self.runs, "arrows": by_arrow(self.crashes), "events": self.events, "violations": self.broken}

    def as_text(self) -> str:
        """Give it all, for a person."""
        lines = [f"{number:7}  {arrow}" for arrow, number in by_arrow(self.crashes).items()]
        lines += ["", *(f"{number:7}  {event}" for event, number in sorted(self.events.items()))]
        lines += ["", f"{self.runs} runs, {self.crashes.total()} crashes, {len(self.broken)} violations"]
        return "\n".join([*lines, *(f"{one['run']}, seed {one['seed']}: {one['violation']}" for one in self.broken)])


async def _run(url: str, given: argparse.Namespace) -> int:
    async with model_server(url) as server:
        tally = Tally(server, given.trace)
        names = [given.profile] if given.profile else list(PROFILES)
        for number in range(given.runs):
            if given.hunt:
                await tally.run(given.hunt, hunting(given.hunt), given.seed + number)
            else:
                name = names[number % len(names)]
                await tally.run(name, PROFILES[name], given.seed + number)
        while (rarest := min(HUNTED_IN, key=by_arrow(tally.crashes).__getitem__)) and by_arrow(tally.crashes)[
            rarest
        ] < given.crashes:
            if tally.runs % PROGRESS_EVERY == 0:
                sys.stderr.write(f"{tally.runs} runs; hunting {rarest}\n")
            await tally.run(rarest, hunting(rarest), given.seed + tally.runs)
    sys.stdout.write((json.dumps(tally.as_json()) if given.json else tally.as_text()) + "\n")
    return 1 if tally.broken else 0


def main() -> int:
    """Run it; give the exit code."""
    given = _arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with running_postgres() as url:
        return asyncio.run(_run(url, given))


if __name__ == "__main__":
    sys.exit(main())
