"""Where the soak takes place: two servers, wires to both, a folder of logs, and one environment deployed on them."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import asyncpg

from examples.servers.find import started_postgres, started_rabbit
from examples.servers.server import BrokerServer, DatabaseServer
from shared.errors import MatinsError
from shared.postgres import Session, connect
from tests.soak.arrows import install_holds
from tests.soak.jobs import ACCOUNTS, POISON, TABLES, module_text
from tests.soak.provider import Provider
from tests.support.logins import as_login, make_logins
from tests.support.processes import ROOT, Deployment
from tests.support.proxy import Proxy

# Short waits, so that much happens in a minute; long enough that a busy machine is not taken for a dead one.
SETTINGS = {
    "claim_lease": "3s",
    "tick_interval": "400ms",
    "sweep_interval": "1s",
    "resend_after": "5s",
    "outside_lease": "3s",
    "grace_period": "8s",
    "broker_heartbeat": "3s",
    "broker_timeout": "4s",
    "database_timeout": "6s",
    "max_crashes": "4",
    "delays": "1,2,5",
    "prefetch": "4",
    "in_flight": "200",
    "pool_size": "8",
    "log_format": "json",
}
COMMAND_SECONDS = 60.0
LOOK_SECONDS = 4.0
MIGRATIONS = 4
AWAY = (MatinsError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended, and what it said."""

    arguments: tuple[str, ...]
    code: int
    output: str


@dataclass(slots=True)
class Place:
    """Everything that is disturbed."""

    folder: Path
    database: DatabaseServer
    broker: BrokerServer
    provider: Provider
    broker_wire: Proxy
    database_wire: Proxy
    deployment: Deployment
    version: int = 0
    far: str = ""
    wiped: bool = False
    commands: list[Said] = field(default_factory=list)

    def declare(self, version: int) -> None:
        """Put another version of the jobs' module in place; who starts from now on has it."""
        self.version = version
        path = self.folder / f"{self.deployment.module}.py"
        fresh = path.with_suffix(".new")
        fresh.write_text(module_text(version, self.far))
        fresh.replace(path)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Have a connection to look with; raises one of AWAY."""
        session = await connect(self.database.url, name="soak", timeout=timedelta(seconds=LOOK_SECONDS))
        try:
            yield session
        finally:
            with suppress(*AWAY):
                await session.close(timeout=LOOK_SECONDS)

    async def command(self, *arguments: str, kind: str = "trigger") -> Said:
        """Run a command line to its end, as an operator does."""
        url = self.database.url if "migrate" in arguments else as_login(self.database.url, "trigger")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", kind, *arguments),
            cwd=ROOT,
            env=self.deployment.variables(database_url=url),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
        finally:
            if process.returncode is None:
                process.kill()
        assert process.returncode is not None
        said = Said(arguments, process.returncode, output.decode(errors="replace"))
        self.commands.append(said)
        return said

    async def migrate(self) -> None:
        """Do what a deploy does, again if a server was away meanwhile; raises AssertionError with what it said."""
        said = await self.command("migrate")
        for _ in range(MIGRATIONS - 1):
            if said.code == 0:
                break
            said = await self.command("migrate")
        assert said.code == 0, f"migrate exited {said.code}:\n{said.output}"


def far_schedule() -> str:
    """Give a schedule that is not due within months."""
    then = datetime.now(UTC) + timedelta(days=150)
    return f"0 12 {then.day} {then.month} *"


@asynccontextmanager
async def place(folder: Path) -> AsyncIterator[Place]:
    """Have everything deployed meanwhile, with no service running yet; all of it ends with the block."""
    database = await anyio.to_thread.run_sync(started_postgres)
    try:
        broker = await anyio.to_thread.run_sync(started_rabbit)
        try:
            async with Provider() as provider, Proxy(broker.url) as broker_wire, Proxy(database.url) as database_wire:
                deployment = Deployment(folder, database.url, broker.url, "soak", SETTINGS, datetime.now(UTC))
                # Versions follow each other faster than the cache of compiled modules can tell them apart.
                deployment.others["PYTHONDONTWRITEBYTECODE"] = "1"
                made = Place(
                    folder, database, broker, provider, broker_wire, database_wire, deployment, far=far_schedule()
                )
                (folder / "provider").write_text(str(provider.port))
                made.declare(0)
                async with made.session() as session:
                    await make_logins(session)
                await made.migrate()
                async with made.session() as session:
                    await session.execute(TABLES)
                    await session.execute("insert into account select unnest($1::text[])", [*ACCOUNTS, POISON])
                    await install_holds(session)
                try:
                    yield made
                finally:
                    deployment.end()
        finally:
            broker.resume()
            await anyio.to_thread.run_sync(broker.delete)
    finally:
        database.resume()
        await anyio.to_thread.run_sync(database.delete)


def rss_megabytes(process_id: int) -> float:
    """Give how much memory a process has, 0 if it is gone."""
    try:
        pages = int(Path(f"/proc/{process_id}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
