"""How long a pass of the watch takes over many jobs with a long past."""

import asyncio
from datetime import timedelta
from statistics import median

from benchmarks.history import make_history
from benchmarks.site import durable_postgres, own_database
from shared import clock
from shared.migrate import enter_environment, migrate
from shared.postgres import Database, connect, database_now
from shared.watch_pass import Watch
from shared.zones import tzdata_version

PASSES = 20
WAIT = timedelta(minutes=10)
# Of each job: with 10,000 of them a million past occurrences.
HOURS_AGO = 100
HOURS_AHEAD = 49


def run(jobs: int) -> None:
    """Print how long the passes took until each job was compared once, and afterwards."""
    with durable_postgres(statistics=False) as administrator_url, own_database(administrator_url) as url:
        asyncio.run(measure(url, jobs))


async def measure(url: str, jobs: int) -> None:
    """Make the jobs and their past, and look."""
    session = await connect(url, name="bench", timeout=WAIT)
    await migrate(session)
    await enter_environment(session, "bench", create=True)
    now = await database_now(session)
    await make_history(
        session, jobs=jobs, hours_ago=HOURS_AGO, hours_ahead=HOURS_AHEAD, now=now, zones=tzdata_version()
    )
    await session.close()
    database = Database(lambda: url, name="bench", size=2, timeout=WAIT)
    await database.open()
    watch = Watch(database, "bench", timedelta(0), timedelta(hours=4))
    print(f"{jobs:,} jobs, {jobs * HOURS_AGO:,} past occurrences, {jobs * HOURS_AHEAD:,} ahead")
    took = []
    async with database.session() as session:
        while await session.fetchval("select count(*) from matins.comparison") < jobs:
            took.append(await seconds_of(watch))
    tell("while each job is compared for the first time", took)
    tell("afterwards", [await seconds_of(watch) for _ in range(PASSES)])
    await database.close()


def tell(name: str, took: list[float]) -> None:
    """Print how long passes took."""
    print(f"{name}: {len(took)} passes, median {median(took):.3f} s, longest {max(took):.3f} s")


async def seconds_of(watch: Watch) -> float:
    """Look once; give how long it took."""
    begun_at = clock.monotonic()
    await watch.watch_pass()
    return clock.monotonic() - begun_at
