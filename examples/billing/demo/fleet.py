"""The demo's processes: three triggers, three workers, a payment provider, and commands that run to their end."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from os import environ  # noqa: TID251 - the processes get this environment, with the demo's settings in it
from pathlib import Path
from typing import Any, Self

from examples.billing.demo.place import Place
from examples.billing.demo.screen import DemoFailed, until

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 60.0
END_SECONDS = 30.0
SLOW_SECONDS = 2
# Short, so that nobody has to wait for what is waited for in production; otherwise everything is as it is there.
SETTINGS = {
    "ENVIRONMENT": "demo",
    "JOBS": "examples.billing.jobs",
    "LOG_FORMAT": "json",
    "TICK_INTERVAL": "200ms",
    "CLAIM_LEASE": "2s",
    "SWEEP_INTERVAL": "500ms",
    "OUTSIDE_LEASE": "3s",
    "RESEND_AFTER": "10s",
    "GRACE_PERIOD": "15s",
    "EXAMPLE_SLOW_SECONDS": str(SLOW_SECONDS),
}


@dataclass(slots=True)
class Member:
    """A process that was started; its output goes to the file `log`."""

    name: str
    log: Path
    popen: subprocess.Popen[bytes]
    killed: bool = False

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.popen.poll() is None

    def said(self, event: str) -> dict[str, Any] | None:
        """Give its first line of an event, None if there is none yet."""
        for text in self.log.read_bytes().splitlines():
            with suppress(json.JSONDecodeError):
                line = json.loads(text)
                if isinstance(line, dict) and line.get("event") == event:
                    return line
        return None

    async def heard(self, event: str) -> dict[str, Any]:
        """Wait for its first line of an event. Raises DemoFailed when it ends before."""

        async def look() -> bool:
            if not self.alive:
                raise DemoFailed(f"{self.name} ended with {self.popen.returncode}; see {self.log}")
            return self.said(event) is not None

        await until(f"{self.name} to say {event!r}; see {self.log}", look, START_SECONDS)
        return self.said(event) or {}

    @property
    def instance(self) -> str:
        """The random id that it made at its start."""
        return str((self.said("starting") or {}).get("instance", ""))

    @property
    def health(self) -> str:
        """Where it tells whether it is well."""
        line = self.said("health endpoint open") or {}
        return f"http://{line.get('host')}:{line.get('port')}/readyz"

    def kill(self) -> None:
        """End it with SIGKILL: it can do nothing any more."""
        self.killed = True
        self.popen.kill()
        self.popen.wait(END_SECONDS)


@dataclass(slots=True)
class Fleet:
    """All processes of the demo; none outlives the block that holds it."""

    place: Place
    folder: Path
    night: str
    members: list[Member] = field(default_factory=list)
    more: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        """Begin without processes."""
        return self

    def __exit__(self, *_: object) -> None:
        """End whatever still runs."""
        for member in self.members:
            if member.alive:
                member.popen.kill()
                member.popen.wait(END_SECONDS)

    def variables(self) -> Mapping[str, str]:
        """Give the settings of every process; the night falls when `night`, a cron text, says."""
        place = self.place
        ours = SETTINGS | {
            "DATABASE_URL": place.database_url,
            "BROKER_URL": place.broker_url,
            "PREFIX": place.prefix,
            "EXAMPLE_SCHEDULE": self.night,
        }
        if place.management_url:
            ours["MANAGEMENT_URL"] = place.management_url
        return {f"MATINS_{name}": value for name, value in (ours | self.more).items()}

    def start(self, name: str, *arguments: str) -> Member:
        """Start `python -m …`."""
        log = self.folder / f"{name}.log"
        kept = {key: value for key, value in environ.items() if not key.startswith("MATINS_")}
        with log.open("wb") as output:
            popen = subprocess.Popen(
                [*_ending_with_us(), sys.executable, "-m", *arguments],
                cwd=ROOT,
                env=kept | dict(self.variables()),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C is for the demo, which ends them in order.
                start_new_session=True,
            )
        member = Member(name, log, popen)
        self.members.append(member)
        return member

    def command(self, *arguments: str) -> None:
        """Run `python -m trigger …` on this terminal. Raises DemoFailed unless it exits 0."""
        kept = {key: value for key, value in environ.items() if not key.startswith("MATINS_")}
        command = [sys.executable, "-m", "trigger", *arguments]
        sys.stdout.flush()
        done = subprocess.run(command, cwd=ROOT, env=kept | dict(self.variables()), check=False, timeout=120)
        if done.returncode:
            raise DemoFailed(f"python -m trigger {' '.join(arguments)} exited {done.returncode}")

    def by_instance(self, instance: str) -> Member:
        """Give the living process with an id, or with the beginning of one."""
        return next(one for one in self.members if one.instance.startswith(instance) and instance and one.alive)

    async def end(self) -> dict[str, int | None]:
        """Ask every living process to end, and give the exit codes by name; None for one that did not end."""
        living = [member for member in self.members if member.alive]
        for member in living:
            member.popen.terminate()

        async def ended() -> bool:
            return not any(member.alive for member in living)

        with suppress(DemoFailed):
            await until("all processes to end", ended, END_SECONDS)
        return {member.name: member.popen.poll() for member in living}


def _ending_with_us() -> list[str]:
    """Have the kernel end a process with the demo, where it can."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []
