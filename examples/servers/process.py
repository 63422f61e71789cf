"""Private processes: run by an ordinary user, ended with their parent, stopped and frozen as a whole.

PostgreSQL refuses to run as root, so root hands its processes to the user `nobody`. The kernel signals a child when the
thread that started it ends, so all of them are started from one thread that lives as long as this process.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from examples.servers.server import ServerUnavailableError, wait_until

LAUNCHER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="launcher")
LOG_LINES = 20
NOBODY = 65534
STATE_FIELD, PARENT_FIELD = 0, 1


def private_folder(name: str) -> Path:
    """Make an empty temporary folder that belongs to the user whom the processes run as."""
    folder = Path(tempfile.mkdtemp(prefix=f"matins-{name}-"))
    give_away(folder)
    return folder


def give_away(path: Path) -> None:
    """Let the user whom the processes run as own `path`."""
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)


def as_ordinary_user(command: Sequence[str], death_signal: str = "KILL") -> list[str]:
    """Wrap `command`: never root, and signalled with `death_signal` when this process ends, where Linux allows it."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return list(command)
    wrapped = [setpriv, "--pdeathsig", death_signal]
    if os.geteuid() == 0:
        wrapped += ["--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    return [*wrapped, "--", *command]


class Process:
    """A running program and everything that it started; its output goes to the file `log`."""

    def __init__(
        self, command: Sequence[str], *, environment: Mapping[str, str], log: Path, death_signal: str = "KILL"
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self._popen = LAUNCHER.submit(
                subprocess.Popen[bytes],
                as_ordinary_user(command, death_signal),
                env=dict(environment),
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ).result()

    @property
    def alive(self) -> bool:
        """Whether the program itself still runs."""
        return self._popen.poll() is None

    def check(self) -> None:
        """Raise ServerUnavailableError, with the end of the log, if the program has ended."""
        if not self.alive:
            raise ServerUnavailableError(f"The program ended with {self._popen.returncode}:\n{self.last_lines()}")

    def last_lines(self) -> str:
        """Give the end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_LINES:])

    def end(self, with_signal: signal.Signals, seconds: float) -> None:
        """Ask the program to end, and kill whatever is left after `seconds`."""
        self.resume()
        if self.alive:
            self._popen.send_signal(with_signal)
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(seconds)
        self.kill()

    def kill(self) -> None:
        """End the program and its descendants with SIGKILL, and return when they are gone."""
        family = [self._popen.pid, *descendants(self._popen.pid)] if self.alive else []
        send(signal.SIGKILL, family)
        self._popen.wait()
        wait_until(lambda: not any(map(is_running, family)), 10, lambda: f"Processes {family} outlive SIGKILL.")

    def pause(self) -> None:
        """Freeze the program, then its descendants: a frozen program starts no more of them."""
        if self.alive:
            send(signal.SIGSTOP, [self._popen.pid])
            send(signal.SIGSTOP, descendants(self._popen.pid))

    def resume(self) -> None:
        """Let the frozen program and its descendants go on."""
        if self.alive:
            send(signal.SIGCONT, [*descendants(self._popen.pid), self._popen.pid])


def send(which: signal.Signals, process_ids: Sequence[int]) -> None:
    """Signal each process that still exists."""
    for process_id in process_ids:
        with suppress(ProcessLookupError):
            os.kill(process_id, which)


def descendants(ancestor: int) -> list[int]:
    """Give the ids of all processes below `ancestor`, which must be alive."""
    parents = {int(entry.name): fields[PARENT_FIELD] for entry in process_entries() if (fields := status(entry))}
    family = [ancestor]
    for member in family:
        family.extend(child for child, parent in parents.items() if parent == str(member))
    return family[1:]


def is_running(process_id: int) -> bool:
    """Tell whether the process exists and isn't merely waiting to be collected by its parent."""
    fields = status(Path("/proc") / str(process_id))
    return bool(fields) and fields[STATE_FIELD] != "Z"


def process_entries() -> list[Path]:
    """Give one path in /proc for every process."""
    return [entry for entry in Path("/proc").glob("[0-9]*") if entry.name.isdigit()]


def status(entry: Path) -> list[str]:
    """Give the fields of a process after its name (state first, then its parent), none if it is gone."""
    try:
        return (entry / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
