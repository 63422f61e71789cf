"""Bringing a deployment to rest, as an orderly shutdown does, and judging what it leaves."""

import os
import signal
import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import aio_pika
from aio_pika.exceptions import ChannelClosed

from shared.job import SqlAccounts
from shared.postgres import Session
from tests.support.checker import Violation, assert_none, check
from tests.support.fleet import until
from tests.support.ledger import session_on

if TYPE_CHECKING:
    from tests.support.processes import Deployment, Service

ALL_ACCOUNTS = "select id as account from account"
# What even then comes back is taken up by nobody.
MOST_TURNS = 3
OPEN = "select count(*) from matins.occurrence where state in ('claimed', 'running')"
SESSIONS = """
select count(*) from pg_stat_activity where datname = current_database() and application_name like 'matins %'
"""


@dataclass(slots=True)
class Judging:
    """What a test tells the checker of its deployment; see `tests.support.checker.check`.

    `accounts` are queries by job; None: every account of the table, for jobs that read it as a whole.
    """

    wanted: bool = False
    without_effects: set[str] = field(default_factory=set)
    outside_effects: dict[tuple[str, str], int] | None = None
    accounts: dict[str, str] | None = None
    secrets: list[str] = field(default_factory=list)
    strangers: int = 0


async def judge_deployment(deployed: "Deployment") -> None:
    """Let everything settle, end every process in order, and raise AssertionError with what does not hold."""
    async with session_on(deployed.database_url) as session:
        workers = [one for one in deployed.services if one.kind == "worker" and one.alive]
        if workers:
            await settle(session, deployed)
        violations = await shut_down(session, deployed)
        if workers:
            violations += await take_up(session, deployed, workers[-1])
        violations += await check(
            session,
            deployed.broker_url,
            without_effects=deployed.judging.without_effects,
            outside_effects=deployed.judging.outside_effects,
            accounts=_accounts(deployed),
            logs=[service.log for service in deployed.services],
            secrets=[*deployed.judging.secrets, *_passwords(deployed)],
            strangers=deployed.judging.strangers,
        )
    assert_none(violations)


async def settle(session: Session, deployed: "Deployment") -> None:
    """Wait until no occurrence is open and the queues are empty; what never comes so far is the checker's to tell."""

    async def settled() -> bool:
        return not await session.fetchval(OPEN) and not await _waiting(session, deployed.broker_url)

    with suppress(TimeoutError):
        await until(settled)


async def _waiting(session: Session, broker_url: str) -> int:
    """Count the messages that wait in all queues but the parked one."""
    topology = await session.fetchval("select topology from matins.environment")
    found = 0
    async with await aio_pika.connect(broker_url) as connection:
        for name in topology["queues"]:
            if not name.endswith(".dead.parked"):
                async with connection.channel() as channel:
                    with suppress(ChannelClosed):
                        queue = await channel.declare_queue(name, passive=True)
                        found += queue.declaration_result.message_count or 0
    return found


async def shut_down(session: Session, deployed: "Deployment") -> list[Violation]:
    """End every process that still runs, frozen ones too, and tell of those that did not end as they should."""
    alive = [service for service in deployed.services if service.alive]
    for service in alive:
        service.go_on()
        # A second signal would end at once one that drains already.
        if not service.asked_to_end:
            service.terminate()
    codes = [(service, await service.ended()) for service in alive]
    # One that is told to end before it has begun to work ends by the signal, as any program does.
    violations = [
        Violation("process did not end in order", service.log.name, f"exit code {code}")
        for service, code in codes
        if code and (code != -signal.SIGTERM or service.lines("working"))
    ]
    violations += [Violation("process left", command, f"pid {pid}") for pid, command in processes_left(deployed.prefix)]

    async def gone() -> bool:
        return not await session.fetchval(SESSIONS)

    with suppress(TimeoutError):
        await until(gone)
    return violations


async def take_up(session: Session, deployed: "Deployment", worker: "Service") -> list[Violation]:
    """Have a worker like the last one take up what the others had fetched and put back, unstarted, as they drained.

    The broker tells of what waits, and of what is fetched nothing: copies of settled rows may be, when all looks over.
    """
    violations: list[Violation] = []
    for _ in range(MOST_TURNS):
        if not await _waiting(session, deployed.broker_url):
            break
        deployed.start("worker", **worker.settings)
        await settle(session, deployed)
        violations += await shut_down(session, deployed)
    return violations


def processes_left(prefix: str) -> Iterator[tuple[int, str]]:
    """Give the processes of this machine that carry a deployment's prefix in their environment."""
    mark = f"MATINS_PREFIX={prefix}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0") and int(folder.name) != os.getpid():
                yield int(folder.name), (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def _accounts(deployed: "Deployment") -> dict[str, str]:
    """Give, by job, where all its accounts stand: those of the table, unless the test says otherwise."""
    if deployed.judging.accounts is not None:
        return deployed.judging.accounts
    return {
        job.name: "select id from account"
        for job in deployed.jobs
        if isinstance(job.accounts, SqlAccounts) and job.accounts.query == ALL_ACCOUNTS
    }


def _passwords(deployed: "Deployment") -> list[str]:
    found = [urllib.parse.urlsplit(url).password for url in (deployed.database_url, deployed.broker_url)]
    return [one for one in found if one and len(one) > len("postgres")]
