"""Whether memory stays flat and the rate holds while a large occurrence runs."""

from pathlib import Path
from statistics import median

from benchmarks.processes import Running, our_fleet
from benchmarks.rounds import Contestant, run_ours, set_up
from benchmarks.site import Site, prepared_site

KIBIBYTES = 1024
DECILES = """
select count(*) / extract(epoch from max(finished_at) - min(finished_at))::double precision
  from (select finished_at, ntile(10) over (order by finished_at) as part
          from matins.ledger where occurrence_id = %s) settled
 group by part
 order by part"""


def run(contestant: Contestant, accounts: int, folder: Path) -> None:
    """Run one occurrence of many accounts; print what each process held meanwhile, and the rate of each tenth."""
    assert contestant.job is not None
    print(f"{contestant.title}: {accounts:,} accounts")
    with prepared_site() as site:
        set_up(site, accounts)
        with our_fleet(site, folder) as fleet:
            before = [resident(one) for one in fleet]
            samples: list[list[float]] = []
            done = run_ours(site, contestant.job, accounts, lambda: samples.append([resident(one) for one in fleet]))
        print_memory(before, samples)
        print_rates(site, done.occurrence)
    print(f"all: {done.rate:,.0f}/s")


def resident(one: Running) -> float:
    """Give the memory that a process holds, in MiB."""
    lines = Path(f"/proc/{one.process.pid}/status").read_text().splitlines()
    size = next(line for line in lines if line.startswith("VmRSS:"))
    return int(size.split()[1]) / KIBIBYTES


def print_memory(before: list[float], samples: list[list[float]]) -> None:
    """Print, for each process, what it held before, at each quarter, and at most."""
    quarters = [samples[len(samples) * quarter // 4] for quarter in range(4)] + [samples[-1]]
    print(f"\n{'MiB':10} {'before':>8} {'begin':>8} {'25 %':>8} {'50 %':>8} {'75 %':>8} {'end':>8} {'most':>8}")
    for number, name in enumerate(("trigger", "worker 1", "worker 2")):
        held = [before[number], *(quarter[number] for quarter in quarters), max(one[number] for one in samples)]
        print(f"{name:10} " + " ".join(f"{value:8.1f}" for value in held))


def print_rates(site: Site, occurrence: int | None) -> None:
    """Print the rate at which each tenth of the accounts was settled."""
    rates = [row[0] for row in site.connection.execute(DECILES, (occurrence,)).fetchall()]
    print("\naccounts/s by tenth: " + " ".join(f"{rate:,.0f}" for rate in rates))
    print(f"the last tenth in the median of all: {rates[-1] / median(rates):.2f}")
