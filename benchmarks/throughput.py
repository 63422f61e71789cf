"""Accounts per second, end to end, of every shape beside the peer: in alternating rounds, as medians."""

import json
import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.rounds import CONTESTANTS, PEER, Contestant, Done, take_part
from benchmarks.site import Site, prepared_site, root
from shared.version import VERSION

LIBRARIES = ("asyncpg", "aio-pika", "aiormq", "celery", "psycopg")


def run(singles: int, rounds: int, folder: Path, only: list[str] | None) -> None:
    """Measure, print the table and write build/bench.json."""
    contestants = [one for one in CONTESTANTS if not only or one.key in only]
    results: dict[str, list[Done]] = {one.key: [] for one in contestants}
    with prepared_site() as site:
        for number in range(rounds):
            # Each second round backwards, so that what warms up or fills up favours nobody.
            for contestant in contestants if number % 2 == 0 else reversed(contestants):
                done = take_part(contestant, site, contestant.accounts(singles), folder)
                results[contestant.key].append(done)
                print(f"round {number + 1}: {contestant.title}: {done.rate:,.0f}/s ({done.seconds:.2f} s)", flush=True)
        versions = versions_of(site)
    ratios = {one.key: ratio(results, one) for one in contestants if one is not PEER and PEER.key in results}
    print_table(contestants, results, ratios)
    write(
        {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "ratios": {key: round(value, 2) for key, value in ratios.items()},
            "rates": {key: [round(one.rate, 1) for one in done] for key, done in results.items()},
            "accounts": {one.key: one.accounts(singles) for one in contestants},
            "rounds": rounds,
            "versions": versions,
            "machine": {"cores": os.cpu_count(), "load": os.getloadavg()[2]},
        }
    )


def ratio(results: dict[str, list[Done]], contestant: Contestant) -> float:
    """Give the median, over the rounds, of a contestant's rate in the peer's of the same round."""
    pairs = zip(results[contestant.key], results[PEER.key], strict=True)
    return median(ours.rate / peers.rate for ours, peers in pairs)


def print_table(contestants: list[Contestant], results: dict[str, list[Done]], ratios: dict[str, float]) -> None:
    """Print medians and ratios."""
    width = max(len(one.title) for one in contestants)
    print(f"\n{'':{width}}  {'accounts/s':>12}  {'beside the peer':>15}")
    for one in contestants:
        rate = median(done.rate for done in results[one.key])
        beside = f"{ratios[one.key]:.1f}" if one.key in ratios else ""
        print(f"{one.title:{width}}  {rate:>12,.0f}  {beside:>15}")


def versions_of(site: Site) -> dict[str, str]:
    """Give the versions of everything that takes part."""
    found = {"matins": VERSION, "python": platform.python_version(), "postgresql": site.value("show server_version")}
    return found | {library: metadata.version(library) for library in LIBRARIES}


def write(result: dict[str, Any]) -> None:
    """Write the results where a machine can read them."""
    path = root() / "build" / "bench.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(f"\n{path.relative_to(root())} has the details.")
