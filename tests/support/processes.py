"""The product's own processes for a test: a module of jobs, a place to deploy it, and processes to maltreat.

Every process ends with the block that made its deployment, whatever the test did to it.
"""

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from shared.job import Job
from tests.support.checker_deployment import Judging, judge_deployment
from tests.support.fleet import deploy, prepared_for, until
from tests.support.ledger import session_on
from tests.support.logins import MAPPED, as_login, grant_rights, make_logins
from trigger.plan import plan_ahead
from trigger.register import register

ROOT = Path(__file__).resolve().parents[2]
KILL_SECONDS = 10.0
# What only the login that migrates may do.
OWNERS = {"migrate", "--migrate", "prune", "retire-queue"}
MINUTE = timedelta(minutes=1)
# Nothing here waits for a minute, so that what is tested is what passes the time.
QUICK = {
    "claim_lease": "1s",
    "tick_interval": "100ms",
    "sweep_interval": "200ms",
    "resend_after": "1s",
    "outside_lease": "1s",
    "grace_period": "10s",
    "broker_heartbeat": "2s",
    "pool_size": "8",
    "log_format": "json",
}
HEADER = """
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import anyio

from shared.job import *
from shared.job import AccountAt, Backoff, Handled

HERE = Path(__file__).parent
SOON = Backoff(first=seconds(0.2), limit=seconds(1))


def nightly(name, handler, *, page_size=1000, **more):
    kept = dict(
        schedule=Cron("0 {hour} * * *"),
        accounts=SqlAccounts("select id as account from account", page_size=page_size),
        decisions=Decisions(
            catch_up="latest",
            catch_up_within=hours(20),
            overlap="skip",
            start_within=minutes(10),
            finish_within=hours(3),
        ),
        backoff=SOON,
    )
    return Job(name, handler=handler, **(kept | more))


async def effect(call):
    await call.connection.execute(
        "insert into effect (account, occurrence) values ($1, $2)", call.account, str(call.occurrence))
"""
TABLES = """
create table account (id text primary key);
create table effect (
    account text not null, occurrence text not null,
    worker text not null default current_setting('application_name'),
    txid bigint not null default pg_current_xact_id()::text::bigint);
"""


@dataclass(slots=True)
class Service:
    """A trigger or a worker that was started; what it says goes to the file `log`."""

    kind: str
    log: Path
    popen: subprocess.Popen[bytes]
    # With what it was started, beside what all processes of its deployment are.
    settings: dict[str, str] = field(default_factory=dict)
    asked_to_end: bool = False

    def lines(self, event: str = "", **values: object) -> list[dict[str, Any]]:
        """Give its lines so far, of an event and with some values if these are given."""
        found = [_line(text) for text in self.log.read_bytes().splitlines() if text.startswith(b"{")]
        return [
            line
            for line in found
            if event in {"", line.get("event")} and all(line.get(name) == value for name, value in values.items())
        ]

    async def logged(self, event: str, **values: object) -> dict[str, Any]:
        """Wait for a line; raises AssertionError with its log if the process ends before."""

        async def look() -> dict[str, Any] | None:
            ended = self.popen.poll()
            if found := self.lines(event, **values):
                return found[0]
            assert ended is None, f"the {self.kind} ended with {ended}:\n{self.log.read_text(errors='replace')}"
            return None

        line: dict[str, Any] = await until(look)
        return line

    async def instance(self) -> str:
        """Give its instance id."""
        return str((await self.logged("starting"))["instance"])

    async def working(self) -> "Service":
        """Wait until it has begun to work."""
        await self.logged("working")
        return self

    async def health(self) -> str:
        """Give the address of its health endpoint."""
        line = await self.logged("health endpoint open")
        return f"http://{line['host']}:{line['port']}"

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.popen.kill()
        self.popen.wait(KILL_SECONDS)

    def terminate(self) -> None:
        """Ask it to drain."""
        self.asked_to_end = True
        self.popen.terminate()

    def freeze(self) -> None:
        """Stop it where it is; its connections stay open."""
        self.popen.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on after a freeze."""
        self.popen.send_signal(signal.SIGCONT)

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.popen.poll() is None

    async def ended(self) -> int:
        """Wait for its end and give its exit code."""

        async def look() -> tuple[int] | None:
            code = self.popen.poll()
            return None if code is None else (code,)

        code: tuple[int] = await until(look)
        return code[0]


def _line(text: bytes) -> dict[str, Any]:
    with suppress(orjson.JSONDecodeError):
        found: dict[str, Any] = orjson.loads(text)
        return found
    # The last line may be half written.
    return {}


@dataclass(slots=True)
class Deployment:
    """One environment with one module of jobs; `night` is the last full hour, when all its jobs were due."""

    folder: Path
    database_url: str
    broker_url: str
    prefix: str
    settings: dict[str, str]
    night: datetime
    jobs: tuple[Job, ...] = ()
    services: list[Service] = field(default_factory=list)
    # Where the product's packages are; a copy stands for another release.
    root: Path = ROOT
    # Variables that are not ours, as OpenTelemetry's.
    others: dict[str, str] = field(default_factory=dict)
    # What the checker is told at the end of what only the test knows.
    judging: Judging = field(default_factory=Judging)

    @property
    def module(self) -> str:
        """The name of the module of jobs, which no other test has."""
        return f"night_{self.prefix}"

    def variables(self, **settings: str) -> dict[str, str]:
        """Give the environment of an administrator's process; `settings` are written without their prefix."""
        ours = {
            "environment": "test",
            "jobs": self.module,
            "database_url": self.database_url,
            "database_roles": MAPPED,
            "broker_url": self.broker_url,
            "prefix": self.prefix,
            **QUICK,
            **self.settings,
            **settings,
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MATINS_", "OTEL_"))}
        kept |= {"PYTHONPATH": str(self.folder)} | self.others
        return kept | {f"MATINS_{name.upper()}": one for name, one in ours.items()}

    def declare(self, text: str) -> None:
        """Write the module of jobs, and import it as the processes do."""
        path = self.folder / f"{self.module}.py"
        path.write_text(HEADER.replace("{hour}", str(self.night.hour)) + text)
        spec = importlib.util.spec_from_file_location(self.module, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.jobs = tuple(module.jobs)

    def declare_beside(self, name: str, text: str) -> str:
        """Write another module of jobs, which this process never imports; give the name to start processes with."""
        module = f"{self.module}_{name}"
        (self.folder / f"{module}.py").write_text(HEADER.replace("{hour}", str(self.night.hour)) + text)
        return module

    async def deploy(self, accounts: int | Sequence[str], *, fall: bool = True) -> None:
        """Do what migrate does, and make accounts; with `fall` the jobs are known since just before the night."""
        prepared = prepared_for("trigger", self.jobs, self.database_url, self.broker_url, self.prefix, **self.settings)
        await deploy(prepared)
        names = [f"a{number:06d}" for number in range(accounts)] if isinstance(accounts, int) else accounts
        self.judging.wanted = True
        async with session_on(self.database_url) as session:
            await grant_rights(session, {job.name: job for job in self.jobs})
            await session.execute(TABLES)
            await session.execute("insert into account select unnest($1::text[])", names)
            for job in self.jobs if fall else ():
                await register(session, job, instance="deployed", now=self.night - MINUTE)
                await plan_ahead(session, job, 1, now=self.night - MINUTE)

    async def fall(self, *names: str) -> None:
        """Let the night fall for running triggers: they count as alive, and the jobs as known, since just before it.

        With `names` it falls for these jobs alone.
        """
        before = self.night - MINUTE
        falling = [job for job in self.jobs if job.name in names or not names]
        known = "update matins.job set known_since = $1, planned_through = $1 where name = any($2)"
        async with session_on(self.database_url) as session, session.transaction():
            await session.execute(known, before, [job.name for job in falling])
            await session.execute("update matins.instance set started_at = $1", before)
            for job in falling:
                await plan_ahead(session, job, 1, now=before)

    def start(self, kind: str, *arguments: str, **settings: str) -> Service:
        """Start `python -m trigger` or `worker`, by default with `serve`, under the least-privileged login of its kind.

        What migrates or takes away is an administrator's; an address that lies in a file is left as it is.
        """
        url = settings.get("database_url", self.database_url)
        in_a_file = "database_url_file" in self.settings | settings
        if not in_a_file and not OWNERS & set(arguments):
            settings["database_url"] = as_login(url, kind)
        log = self.folder / f"{kind}-{len(self.services)}.log"
        command = [sys.executable, "-m", kind, *(arguments or ("serve",))]
        with log.open("wb") as output:
            popen = subprocess.Popen(
                command,
                env=self.variables(**settings),
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        service = Service(kind, log, popen, settings)
        self.services.append(service)
        return service

    async def command(self, *arguments: str, kind: str = "trigger", **settings: str) -> str:
        """Run a command to its end, see that it exits 0, and give what it said."""
        service = self.start(kind, *arguments, **settings)
        code = await service.ended()
        said = service.log.read_text(errors="replace")
        assert code == 0, f"{' '.join(arguments)} exited {code}:\n{said}"
        return said

    def end(self) -> None:
        """End every process, frozen ones too."""
        for service in self.services:
            service.popen.kill()
        for service in self.services:
            service.popen.wait(KILL_SECONDS)


def last_full_hour() -> datetime:
    """Give the full hour that is over, in UTC; at least some seconds lie behind it on any server's clock."""
    return (datetime.now(UTC) - timedelta(seconds=10)).replace(minute=0, second=0, microsecond=0)


@asynccontextmanager
async def deployment(
    folder: Path, database_url: str, broker_url: str, prefix: str, **settings: str
) -> AsyncIterator[Deployment]:
    """Have a deployment meanwhile, and end its processes; nothing is declared or deployed yet.

    When the block ends well the deployment comes to rest, and the checker judges it.
    """
    made = Deployment(folder, database_url, broker_url, prefix, settings, last_full_hour())
    async with session_on(database_url) as session:
        await make_logins(session)
    try:
        yield made
        if made.judging.wanted:
            await judge_deployment(made)
    finally:
        made.end()


def names_of(said: str) -> list[str]:
    """Give the account names of a deployment that a text mentions, each once, in order."""
    return sorted(set(re.findall(r"a\d{6}", said)))
