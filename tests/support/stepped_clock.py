"""A PostgreSQL whose clock a test sets: it goes on from there by itself, and everything else keeps the real time.

What is due is decided by the database's clock, so nights pass in seconds for real processes.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from examples.servers.installer import find_faketime
from examples.servers.postgres import PostgresServer
from examples.servers.process import give_away
from examples.servers.programs import Programs
from shared.migrate import migrate
from shared.postgres import Session, database_now
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.processes import Deployment, Service, deployment

ADVICE = "this drill needs libfaketime: apt-get install faketime"


@dataclass(frozen=True)
class WithVariables(Programs):
    """Programs of which the server itself has further variables, and nothing that starts it."""

    variables: Mapping[str, str] = field(default_factory=dict)

    def command(self, state: Path, program: str, *arguments: str) -> list[str]:
        """Give the command that runs a program; what the library makes must belong to the user who runs the server."""
        command = super().command(state, program, *arguments)
        return (
            ["env", *(f"{name}={value}" for name, value in self.variables.items()), *command]
            if program == "postgres"
            else command
        )


class SteppedPostgres(PostgresServer):
    """Like any other of this machine's, until its clock is set."""

    def __init__(self) -> None:
        library = find_faketime()
        assert library is not None, ADVICE
        super().__init__()
        variables = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._offset),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }
        self._programs = WithVariables(self._programs.folder, self._programs.system, variables)
        self._write(0.0)

    def set_clock(self, instant: datetime) -> None:
        """Have it be `instant` now for every session."""
        self._write((instant - datetime.now(UTC)).total_seconds())

    @property
    def _offset(self) -> Path:
        return self._folder / "offset"

    def _write(self, seconds: float) -> None:
        written = self._folder / "offset.next"
        written.write_text(f"{seconds:+.3f}\n")
        give_away(written)
        # Whoever reads it finds the one or the other.
        written.replace(self._offset)


UNDECIDED = """
select exists (select from matins.occurrence
                where state in ('claimed', 'running') or (state = 'expected' and scheduled_at <= clock_timestamp()))
    or exists (select from matins.job where planned_through < clock_timestamp())
    or not exists (select from matins.job)
"""


@dataclass(slots=True)
class Stepped:
    """A deployment on a database whose clock the test sets."""

    server: SteppedPostgres
    deployed: Deployment
    session: Session

    async def decided(self) -> None:
        """Wait until everything due is decided, and what runs is over."""
        await until(lambda: self.session.fetchval(f"select not ({UNDECIDED})"))

    async def pass_to(self, instant: datetime) -> None:
        """Have it be `instant`, and wait until everything due by then is decided and over."""
        self.server.set_clock(instant)
        await self.decided()

    async def cross(self, instant: datetime) -> None:
        """Wait for an instant that is some seconds off."""

        async def crossed() -> bool:
            now: datetime = await database_now(self.session)
            return now > instant

        await until(crossed)

    async def beaten(self, *services: Service) -> None:
        """Wait until each has said twice more that it lives: its loops have then seen the clock as it is."""
        ids = [await service.instance() for service in services]
        count = "select min(beats) from matins.instance where id = any ($1)"
        before = await self.session.fetchval(count, ids)
        await until(lambda: self.session.fetchval(f"select ({count}) >= $2", ids, before + 2))

    async def ran(self, job: str) -> list[datetime]:
        """Give the instants of a job that were claimed, in order."""
        query = "select scheduled_at from matins.occurrence where job = $1 and claimed_at is not null order by 1"
        return [row["scheduled_at"] for row in await self.session.fetch(query, job)]

    async def ends(self, job: str, since: datetime, until_: datetime) -> dict[str, int]:
        """Count the instants of a job in a half-open time by their state, with the reason of one that was skipped."""
        rows = await self.session.fetch(
            """select state || coalesce(': ' || reason, '') as ended, count(*) as instants from matins.occurrence
                where job = $1 and scheduled_at >= $2 and scheduled_at < $3 group by 1""",
            job,
            since,
            until_,
        )
        return {row["ended"]: row["instants"] for row in rows}


@asynccontextmanager
async def stepped_deployment(folder: Path, broker_url: str, prefix: str) -> AsyncIterator[Stepped]:
    """Have one meanwhile; nothing is declared or deployed yet."""
    with SteppedPostgres() as server:
        async with session_on(server.url) as session:
            await migrate(session)
        async with deployment(folder, server.url, broker_url, prefix) as made, session_on(server.url) as session:
            yield Stepped(server, made, session)
