"""How long the console's pages take with many jobs, a long past, and a run of many accounts in progress."""

import asyncio
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final
from urllib.parse import quote

import anyio
import anyio.to_thread

from benchmarks.history import make_history
from benchmarks.site import durable_postgres, own_database
from schemas.occurrence import Identity
from shared import clock
from shared.migrate import enter_environment, migrate
from shared.postgres import Session, connect, database_now
from shared.zones import tzdata_version

WAIT: Final = timedelta(minutes=10)
JOBS: Final = 1000
# Of each job: 100,000 past occurrences.
HOURS_AGO: Final = 100
HOURS_AHEAD: Final = 49
LOOKS: Final = 40
SETTLED_AT_ONCE: Final = 500
RUNNING = """
update matins.occurrence
   set state = 'running', opened_at = due_at, closed_at = null, total = null, succeeded = null, failed = null,
       dead = null, cancelled = null, report = null, accounts_read = $3
 where job = $1 and scheduled_at = $2
returning id"""
ACCOUNTS = """
insert into matins.ledger (occurrence_id, scheduled_at, account, position, published_at)
select $1, $2, 'a' || lpad(n::text, 8, '0'), n, clock_timestamp() from generate_series(1, $3::bigint) n"""
FAILED = """
update matins.ledger
   set state = 'failed', finished_at = clock_timestamp(), attempts = 3, error_class = 'NoTaxId', error = 'none'
 where occurrence_id = $1 and position % 1000 = 0"""
SETTLE = """
update matins.ledger set state = 'succeeded', finished_at = clock_timestamp()
 where occurrence_id = $1 and position between $2 and $3 and state = 'pending'"""


def run(accounts: int) -> None:
    """Print, for each page, how long its first byte and all of it took, while `accounts` of one occurrence are run."""
    with durable_postgres(statistics=False) as administrator_url, own_database(administrator_url) as url:
        asyncio.run(measure(url, accounts))


async def measure(url: str, accounts: int) -> None:
    """Make the data, look, and go on settling meanwhile."""
    session = await connect(url, name="bench", timeout=WAIT)
    running, occurrence_id = await _made(session, accounts)
    print(f"{JOBS:,} jobs, {JOBS * HOURS_AGO:,} past occurrences, {running} runs {accounts:,} accounts")
    paths: tuple[str, ...] = (
        "/",
        "/?page=5",
        "/jobs/job-2",
        f"/jobs/{running.partition(':')[0]}",
        f"/occurrences/{quote(running)}",
    )
    accounts_path = f"/occurrences/{quote(running)}/accounts"
    paths += (accounts_path, f"{accounts_path}?state=failed", f"{accounts_path}?state=running")
    paths += (f"{accounts_path}?q=a0000012", f"/occurrences/{quote(running)}/account?id=a00001000")
    paths += ("/alerts", "/audit", "/fleet")
    with _console(url) as port:
        async with anyio.create_task_group() as group:
            group.start_soon(_settle, session, occurrence_id, accounts)
            for path in paths:
                await anyio.to_thread.run_sync(_look, port, path)
            group.cancel_scope.cancel()
    await session.close()


async def _made(session: Session, accounts: int) -> tuple[str, int]:
    await migrate(session)
    await enter_environment(session, "bench", create=True)
    now = await database_now(session)
    zones = tzdata_version()
    await make_history(session, jobs=JOBS, hours_ago=HOURS_AGO, hours_ahead=HOURS_AHEAD, now=now, zones=zones)
    present: datetime = now.replace(minute=0, second=0, microsecond=0)
    running = Identity("job-1", present)
    occurrence_id: int = await session.fetchval(RUNNING, running.job, present, accounts)
    await session.execute("select matins.ensure_ledger_partition($1)", present)
    await session.execute(ACCOUNTS, occurrence_id, present, accounts, timeout=WAIT.total_seconds())
    await session.execute(FAILED, occurrence_id, timeout=WAIT.total_seconds())
    await session.execute("analyze", timeout=WAIT.total_seconds())
    return str(running), occurrence_id


async def _settle(session: Session, occurrence_id: int, accounts: int) -> None:
    """Settle accounts, some hundreds at a time, as workers do."""
    for first in range(1, accounts, SETTLED_AT_ONCE):
        await session.execute(SETTLE, occurrence_id, first, first + SETTLED_AT_ONCE - 1)
        await clock.sleep(0.1)


@contextmanager
def _console(url: str) -> Iterator[int]:
    """Have a console meanwhile; give its port."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MATINS_")}
    ours = {"MATINS_ENVIRONMENT": "bench", "MATINS_DATABASE_URL": url, "MATINS_LOG_FORMAT": "json"}
    command = [sys.executable, "-m", "trigger", "console", "--address", "127.0.0.1:0"]
    with subprocess.Popen(command, env=kept | ours, stdout=subprocess.PIPE) as process:
        try:
            yield _port(process)
        finally:
            process.terminate()


def _port(process: "subprocess.Popen[bytes]") -> int:
    for line in process.stdout or ():
        said: dict[str, Any] = json.loads(line) if line.startswith(b"{") else {}
        if said.get("event") == "console open":
            return int(said["port"])
    raise RuntimeError("the console ended before it was open")


def _look(port: int, path: str) -> None:
    """Ask for a page, again and again, and print how long it took."""
    looks = [_asked(port, path) for _ in range(LOOKS)]
    first, whole = [one[0] for one in looks], [one[1] for one in looks]
    print(
        f"{path}: {looks[-1][2]}; first byte: first look {first[0]:.3f} s, median {median(first):.3f} s, "
        f"longest of the rest {max(first[1:]):.3f} s; whole page: median {median(whole):.3f} s"
    )


def _asked(port: int, path: str) -> tuple[float, float, str]:
    """Ask for a page once; give the seconds to its first byte and to its last, and what it was."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    asked = clock.monotonic()
    connection.request("GET", path)
    answer = connection.getresponse()
    beginning = answer.read(1)
    first = clock.monotonic() - asked
    size = len(beginning) + len(answer.read())
    connection.close()
    return first, clock.monotonic() - asked, f"{answer.status}, {size // 1024} KiB"
