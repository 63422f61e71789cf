"""A standby of a private PostgreSQL: copied from it, streaming, and promoted when a test wants it to be."""

import subprocess
import urllib.parse

from examples.servers.postgres import PostgresServer
from examples.servers.process import as_ordinary_user
from examples.servers.server import ServerUnavailableError
from tests.support.fleet import until
from tests.support.ledger import session_on


class Standby(PostgresServer):
    """A copy of a running primary; the two share their users and passwords."""

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__()
        self._primary = primary.url
        self._password = urllib.parse.urlsplit(primary.url).password or ""

    def _make_data(self) -> None:
        """Copy the primary, with the way to stream what follows."""
        copied = subprocess.run(
            as_ordinary_user(
                self._programs.command(
                    self._folder,
                    *("pg_basebackup", "--pgdata", self._seen(self._data), "--dbname", self._primary),
                    *("--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"),
                )
            ),
            env=self._environment(),
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if copied.returncode:
            raise ServerUnavailableError(f"pg_basebackup failed:\n{copied.stdout}{copied.stderr}")

    async def fall_behind(self) -> None:
        """Receive nothing of what the primary does from now on; return once it is so."""
        async with session_on(self._primary) as session:
            reached = await session.fetchval("select pg_current_wal_lsn()::text")
        async with session_on(self.url) as session:
            await until(lambda: session.fetchval("select pg_last_wal_replay_lsn() >= $1::text::pg_lsn", reached))
            await session.execute("alter system set primary_conninfo = ''")
            await session.execute("select pg_reload_conf()")
            await until(lambda: session.fetchval("select count(*) = 0 from pg_stat_wal_receiver"))

    async def promote(self) -> None:
        """Make it the primary, and return once it takes writes."""
        async with session_on(self.url) as session:
            assert await session.fetchval("select pg_promote()")


def either(first: PostgresServer, second: PostgresServer) -> str:
    """Give the address of both: a client takes the one that takes writes."""
    one, other = urllib.parse.urlsplit(first.url), urllib.parse.urlsplit(second.url)
    hosts = f"{one.netloc},{other.hostname}:{other.port}"
    return one._replace(netloc=hosts, query="target_session_attrs=read-write").geturl()
