"""The contestants' processes: started as a person would start them, awaited until they are ready, ended in order."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peer import READY
from benchmarks.site import Site, root
from examples.servers.ports import LOOPBACK, free_ports

START_SECONDS = 60.0
END_SECONDS = 20.0
POLL_SECONDS = 0.05
SERVE_TRIGGER = ("-m", "trigger", "serve")
SERVE_WORKER = ("-m", "worker", "serve")
OURS = (SERVE_TRIGGER, SERVE_WORKER, SERVE_WORKER)
# A person's shell may carry settings of another environment.
_INHERITED = ("PATH", "HOME", "LANG", "TZ", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")


@dataclass(frozen=True)
class Running:
    """A process that was started, and the file with what it writes."""

    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise AssertionError, with the end of the log, if it has ended."""
        assert self.process.poll() is None, f"{self.log.stem} has ended by itself:\n{last_lines(self.log)}"


@contextmanager
def running(name: str, command: Sequence[str], variables: Mapping[str, str], folder: Path) -> Iterator[Running]:
    """Have a process running meanwhile; it and its children get SIGTERM, and at last SIGKILL."""
    log = folder / f"{name}-{time.monotonic_ns()}.log"
    environment = {key: os.environ[key] for key in _INHERITED if key in os.environ} | dict(variables)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=root(),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    started = Running(process, log)
    try:
        yield started
        started.check()
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process in order, then whatever is left of its group."""
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        print(f"process {process.pid} had to be killed", file=sys.stderr)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def our_fleet(site: Site, folder: Path, commands: Sequence[Sequence[str]] = OURS) -> Iterator[list[Running]]:
    """Have one trigger and two workers at work meanwhile; the trigger is the first."""
    ports = free_ports(len(commands))
    with ExitStack() as stack:
        fleet = []
        for number, (command, port) in enumerate(zip(commands, ports, strict=True)):
            variables = site.settings() | {"MATINS_HEALTH_ADDRESS": f"{LOOPBACK}:{port}"}
            name = f"worker{number}" if number else "trigger"
            fleet.append(stack.enter_context(running(name, command, variables, folder)))
        for one, port in zip(fleet, ports, strict=True):
            wait_for(lambda port=port: is_ready(port), one)  # type: ignore[misc] # bound for the loop
        yield fleet


@contextmanager
def peer_fleet(site: Site, folder: Path) -> Iterator[Running]:
    """Have the peer's worker with two processes at work meanwhile."""
    command = ("-m", "celery", "-A", "benchmarks.peer", "worker", "-c", "2", "-l", "WARNING")
    variables = {
        "BENCH_DATABASE_URL": site.database_url,
        "BENCH_BROKER_URL": site.broker_url,
        # It refuses to run as root otherwise, and a benchmark in a container does.
        "C_FORCE_ROOT": "1",
    }
    with running("peer", command, variables, folder) as one:
        wait_for(lambda: READY in one.log.read_text(errors="replace"), one)
        yield one


def wait_for(condition: Callable[[], bool], started: Running) -> None:
    """Return once `condition` holds; raises TimeoutError or AssertionError with the end of the process's log."""
    deadline = time.monotonic() + START_SECONDS
    while not condition():
        started.check()
        if time.monotonic() > deadline:
            raise TimeoutError(last_lines(started.log))
        time.sleep(POLL_SECONDS)


def is_ready(port: int) -> bool:
    """Tell whether one of our processes says that it is ready."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False


def last_lines(log: Path) -> str:
    """Give the end of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])
