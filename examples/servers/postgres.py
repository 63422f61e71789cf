"""A private PostgreSQL: its own folder, its own free port on the loopback interface, gone with its parent."""

import os
import secrets
import shutil
import signal
import subprocess
from pathlib import Path

from examples.servers import probe
from examples.servers.ports import LOOPBACK, free_ports
from examples.servers.process import Process, as_ordinary_user, give_away, private_folder
from examples.servers.programs import DATABASE_SERVER_VARIABLE, Programs, chosen, programs_in
from examples.servers.server import DatabaseServer, ServerUnavailableError, wait_until

START_SECONDS = 30.0
STOP_SECONDS = 20.0
MAX_CONNECTIONS = 200


def find_postgres() -> Programs | None:
    """Give the programs that the environment chooses, or else the newest `initdb` and `postgres` of this machine.

    Raises ServerUnavailableError when the chosen folder has none.
    """
    folder = chosen(DATABASE_SERVER_VARIABLE)
    if isinstance(folder, Path):
        return programs_in(folder, DATABASE_SERVER_VARIABLE, "initdb", "usr/lib/postgresql/*/bin")
    folders = [entry for entry in Path("/usr/lib/postgresql").glob("*/bin") if (entry / "initdb").exists()]
    if folders:
        return Programs(max(folders, key=lambda entry: float(entry.parent.name)))
    found = shutil.which("initdb")
    return Programs(Path(found).resolve().parent) if found else None


class PostgresServer(DatabaseServer):
    """PostgreSQL from programs that are there or were chosen.

    `durable=False` trades what survives a crash of the machine (never that of a process) for speed.
    """

    def __init__(self, *, durable: bool = False) -> None:
        programs = find_postgres()
        if programs is None:
            raise ServerUnavailableError("There is no initdb on this machine: install the package postgresql.")
        self._programs = programs
        self._durable = durable
        self._port = free_ports(1)[0]
        self._password = secrets.token_hex(12)
        self._folder = private_folder("postgres")
        self._data = self._folder / "data"
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """An administrator's address of the database `postgres`."""
        return f"postgresql://postgres:{self._password}@{LOOPBACK}:{self._port}/postgres"

    def start(self) -> None:
        """Start on the kept data, made first if there are none, and return when it answers."""
        if not self._data.exists():
            self._make_data()
        process = Process(
            self._programs.command(self._folder, "postgres", "-D", self._seen(self._data), *self._options()),
            environment=self._environment(),
            log=self._folder / "log",
            death_signal="QUIT",
        )
        self._process = process

        def answers() -> bool:
            process.check()
            return probe.postgres_answers(LOOPBACK, self._port)

        wait_until(answers, START_SECONDS, process.last_lines)

    def stop(self) -> None:
        """End all sessions and stop in order."""
        if self._process:
            self._process.end(signal.SIGINT, STOP_SECONDS)
            self._process = None

    def stop_at_once(self) -> None:
        """Stop in the immediate mode."""
        if self._process:
            self._process.end(signal.SIGQUIT, STOP_SECONDS)
            self._process = None

    def kill_backend(self, process_id: int) -> None:
        """End one backend with SIGKILL."""
        os.kill(process_id, signal.SIGKILL)

    def kill(self) -> None:
        """End the postmaster and every backend with SIGKILL."""
        if self._process:
            self._process.kill()
            self._process = None

    def pause(self) -> None:
        """Freeze the postmaster and every backend."""
        if self._process:
            self._process.pause()

    def resume(self) -> None:
        """Let them go on."""
        if self._process:
            self._process.resume()

    def delete(self) -> None:
        """Kill it and remove its folder."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _seen(self, path: Path) -> str:
        return str(self._programs.seen(path, self._folder))

    def _environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "LC_ALL": "C"}

    def _options(self) -> list[str]:
        options = {
            "port": str(self._port),
            "listen_addresses": LOOPBACK,
            "unix_socket_directories": "",
            "max_connections": str(MAX_CONNECTIONS),
        }
        if not self._durable:
            options |= {"fsync": "off", "full_page_writes": "off"}
        return [part for name, value in options.items() for part in ("-c", f"{name}={value}")]

    def _make_data(self) -> None:
        """Make an empty cluster that sorts text as people do, like most of those in production, and asks passwords."""
        secret = self._folder / "password"
        secret.write_text(self._password)
        secret.chmod(0o600)
        give_away(secret)
        made = subprocess.run(
            as_ordinary_user(
                self._programs.command(
                    self._folder,
                    *("initdb", "-D", self._seen(self._data), "-U", "postgres", "--no-sync"),
                    *("--auth=scram-sha-256", f"--pwfile={self._seen(secret)}", "--encoding=UTF8", "--locale=C"),
                    *("--locale-provider=icu", "--icu-locale=en"),
                )
            ),
            env=self._environment(),
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        secret.unlink()
        if made.returncode:
            raise ServerUnavailableError(f"initdb failed:\n{made.stdout}{made.stderr}")
