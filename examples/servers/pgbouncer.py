"""A private pgbouncer in transaction mode before a PostgreSQL, as many deployments have one."""

import shutil
import signal
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from examples.servers import probe
from examples.servers.ports import LOOPBACK, free_ports
from examples.servers.process import Process, give_away, private_folder
from examples.servers.server import ServerUnavailableError, wait_until

START_SECONDS = 10.0
STOP_SECONDS = 5.0
CONFIGURATION = """[databases]
* = host={host} port={port}

[pgbouncer]
listen_addr = {listen}
listen_port = {listen_port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
max_client_conn = 200
default_pool_size = {pool_size}
max_db_connections = {pool_size}
"""


def find_pgbouncer() -> Path | None:
    """Give the program, if this machine has it."""
    found = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    return Path(found) if found else None


class PgBouncer:
    """A pgbouncer before the server of `urls`, which name its users; it opens at most `pool_size` connections there.

    As a context manager it runs.
    """

    def __init__(self, urls: Sequence[str], pool_size: int) -> None:
        program = find_pgbouncer()
        if program is None:
            raise ServerUnavailableError("There is no pgbouncer on this machine: install the package pgbouncer.")
        self._program = program
        self._addresses = [urllib.parse.urlsplit(url) for url in urls]
        self._behind = self._addresses[0]
        self._pool_size = pool_size
        self._port = free_ports(1)[0]
        self._folder = private_folder("pgbouncer")
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """The address through it, for the first user."""
        user, at, _ = self._behind.netloc.rpartition("@")
        return self._behind._replace(netloc=f"{user}{at}{LOOPBACK}:{self._port}").geturl()

    def __enter__(self) -> Self:
        """Start it, and return when it answers."""
        users, settings = self._folder / "users", self._folder / "settings"
        users.write_text("".join(f'"{one.username}" "{one.password}"\n' for one in self._addresses))
        settings.write_text(
            CONFIGURATION.format(
                host=self._behind.hostname,
                port=self._behind.port,
                listen=LOOPBACK,
                listen_port=self._port,
                users=users,
                pool_size=self._pool_size,
            )
        )
        for path in (users, settings):
            give_away(path)
        process = Process([str(self._program), str(settings)], environment={}, log=self._folder / "log")
        self._process = process

        def answers() -> bool:
            process.check()
            return probe.postgres_answers(LOOPBACK, self._port)

        wait_until(answers, START_SECONDS, process.last_lines)
        return self

    def __exit__(self, *_: object) -> None:
        """End it and remove its folder."""
        if self._process:
            self._process.end(signal.SIGTERM, STOP_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)
