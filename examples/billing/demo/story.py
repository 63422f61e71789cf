"""The night, told in order: deploy, fall, a trigger dies, a worker dies, the report, what must hold, and the re-run."""

import asyncio
import shlex
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from examples.billing.accounts import Choice, Made, make_accounts
from examples.billing.data import make_schema, mend
from examples.billing.demo.checks import FAILING_JOBS, Expected, latest_touch, night_checks, rerun_checks
from examples.billing.demo.fleet import Fleet, Member
from examples.billing.demo.night import (
    ENSURE_PARTITION,
    TAKEN_OVER,
    held_fan_out,
    last_night,
    let_night_fall,
    occurrence_id,
    progress,
    worker_inside_a_call,
)
from examples.billing.demo.place import Place, fresh_place, session_on
from examples.billing.demo.screen import LOOK_SECONDS, Check, DemoFailed, Screen, until
from examples.billing.jobs import jobs
from examples.servers.find import Servers
from shared import clock
from shared.postgres import Session

COPIES = 3
HELD_JOB = "invoice-run"
SEED = 1
STEP_SECONDS = 60.0
NIGHT_SECONDS = 300.0
SLOWEST_ACCOUNTS_PER_SECOND = 20


@dataclass(slots=True)
class Story:
    """One telling."""

    screen: Screen
    place: Place
    session: Session
    fleet: Fleet
    night: datetime
    accounts: int
    payments: str = ""
    console: str = ""
    failing: tuple[str, ...] = ()
    triggers: list[Member] = field(default_factory=list)
    workers: list[Member] = field(default_factory=list)

    @property
    def expected(self) -> Expected:
        """What is known of the night."""
        return Expected(self.night, self.accounts, self.failing, COPIES, HELD_JOB)

    async def deploy(self) -> None:
        """Prepare both servers as a deploy does, and make the company's data."""
        self.screen.heading("Deploy")
        screen = self.screen
        screen.say("python -m trigger migrate", "dim")
        self.fleet.command("migrate")
        await make_schema(self.session)
        choice = Choice(count=self.accounts, seed=SEED, until=self.night, failing=3, flaky=2, slow=6)
        made: Made = await make_accounts(self.session, choice)
        self.failing = tuple(sorted(made.failing))
        screen.say(
            f"{made.count:,} accounts are due in the night: {len(made.failing)} lack a tax id and will fail, "
            f"{len(made.flaky)} fail twice and then succeed, {len(made.slow)} are slow, and one is named {made.hostile}"
        )
        provider = self.fleet.start("payments", "examples.billing.payments", "--port", "0")

        async def listening() -> bool:
            self.payments = provider.log.read_text().strip()
            return self.payments.startswith("http")

        await until("the payment provider to listen", listening, STEP_SECONDS)
        self.fleet.more["EXAMPLE_PAYMENTS_URL"] = self.payments

    async def start(self) -> None:
        """Start the services, and wait until they work."""
        self.screen.heading(f"Start {COPIES} triggers and {COPIES} workers; their logs are in {self.fleet.folder}")
        self.triggers = [self.fleet.start(f"trigger-{one}", "trigger", "serve") for one in range(1, COPIES + 1)]
        self.workers = [self.fleet.start(f"worker-{one}", "worker", "serve") for one in range(1, COPIES + 1)]
        for member in (*self.triggers, *self.workers):
            await member.heard("working")
            self.screen.fact(member.name, f"process {member.popen.pid}, {member.health}")

        async def registered() -> bool:
            return bool(await self.session.fetchval("select count(*) = $1 from matins.job", len(jobs)))

        await until("the jobs to be registered", registered, STEP_SECONDS)
        console = self.fleet.start("console", "trigger", "console", "--address", "127.0.0.1:0")
        opened = await console.heard("console open")
        self.console = f"http://{opened['host']}:{opened['port']}"
        self.screen.fact("console", f"{self.console}, to watch the night in a browser")

    async def fall_and_kill_a_trigger(self) -> None:
        """Let the night fall; kill the trigger that fans out, in the middle of a page."""
        screen = self.screen
        screen.heading(f"Night: {self.night:%Y-%m-%d %H:%M} UTC")
        screen.say("The fleet counts as deployed before it, and as asleep when it came: the demo moves what its own")
        screen.say("database knows of jobs and triggers back by that. So each job's last instant is due, and late.")
        await self.session.execute(ENSURE_PARTITION, self.night)
        transaction = self.session.transaction()
        await transaction.start()
        await let_night_fall(self.session, self.night)
        occurrence = await occurrence_id(self.session, HELD_JOB, self.night)
        async with held_fan_out(self.place, occurrence, self.night, self.accounts) as hold:
            await transaction.commit()
            await until("a fan-out in the middle", lambda: hold.reached(self.session), STEP_SECONDS)
            row: Any = await self.session.fetchrow(
                "select claimed_by, accounts_read from matins.occurrence where id = $1", occurrence
            )
            victim = self.fleet.by_instance(row["claimed_by"])
            screen.say(f"{victim.name} won {HELD_JOB}, and is in its fan-out behind {row['accounts_read']:,} accounts.")
            victim.kill()
            screen.incident(f"SIGKILL {victim.name}, in the middle of a page")

        async def taken_over() -> bool:
            return await self.session.fetchrow(TAKEN_OVER, occurrence, victim.instance) is not None

        await until("another trigger to take over", taken_over, STEP_SECONDS)
        taken: Any = await self.session.fetchrow(TAKEN_OVER, occurrence, victim.instance)
        survivor, read = self.fleet.by_instance(taken["id"]), taken["accounts_read"]
        screen.say(f"{survivor.name} took over at epoch {taken['epoch']}, and goes on behind these {read:,} accounts.")

    async def kill_a_worker_and_wait(self) -> None:
        """Kill a worker in the middle of a call, and show the work until it is over."""
        killed = ""
        patience = NIGHT_SECONDS + self.accounts / SLOWEST_ACCOUNTS_PER_SECOND
        deadline = clock.monotonic() + patience
        with self.screen.progress({job.name: self.accounts for job in jobs}) as show:
            while True:
                rows = await progress(self.session, self.night)
                for name, row in rows.items():
                    show(name, row["ended"], row["state"])
                inside = None if killed else await worker_inside_a_call(self.session)
                if inside:
                    victim = self.fleet.by_instance(inside)
                    victim.kill()
                    killed = victim.name
                    self.screen.incident(f"SIGKILL {killed}, in the middle of a slow account")
                if all(row["closed"] for row in rows.values()):
                    break
                if clock.monotonic() > deadline:
                    raise DemoFailed(f"the night is not over after {patience:.0f} s")
                await clock.sleep(LOOK_SECONDS)
        self.screen.check(Check("a worker was killed in the middle of a call", bool(killed), killed))

    async def report(self) -> None:
        """Show the report, and check what must hold."""
        self.screen.heading(f"python -m trigger show {self.expected.name(HELD_JOB)}")
        self.fleet.command("show", self.expected.name(HELD_JOB))
        self.screen.heading("What must hold, asked of the tables")
        for check in await night_checks(self.session, self.expected, self.payments):
            self.screen.check(check)

    async def run_again(self) -> None:
        """Mend what was wrong with the accounts, run those again, and check that only those were touched."""
        self.screen.heading("The next morning")
        mended = await mend(self.session)
        self.screen.say(f"{len(mended)} accounts got their tax id: {', '.join(mended)}")
        since = await latest_touch(self.session)
        for job in FAILING_JOBS:
            name = self.expected.name(job)
            self.screen.say(f"python -m trigger rerun {name} --failed --reason 'tax ids were added' --wait", "dim")
            self.fleet.command("rerun", name, "--failed", "--reason", "tax ids were added", "--wait")
        for check in await rerun_checks(self.session, self.expected, since, self.payments):
            self.screen.check(check)

    async def end(self) -> None:
        """End every process in order, and check how."""
        self.screen.heading("End")
        for name, code in (await self.fleet.end()).items():
            self.screen.check(Check(f"{name} ended in order", code == 0, f"exit code {code}"))

    async def tell(self) -> None:
        """Tell all of it but the end."""
        await self.deploy()
        await self.start()
        await self.fall_and_kill_a_trigger()
        await self.kill_a_worker_and_wait()
        await self.report()
        await self.run_again()


class Interruption:
    """What Ctrl-C and SIGTERM do: end the wait of `--stay`, and before it the demo."""

    def __init__(self, demo: asyncio.Task[Any] | None) -> None:
        self._demo = demo
        self._over = asyncio.Event()
        self._waiting = False

    def interrupt(self) -> None:
        """Take a signal."""
        if self._waiting or self._demo is None:
            self._over.set()
        else:
            self._demo.cancel()

    async def wait(self) -> None:
        """Return at a signal."""
        self._waiting = True
        await self._over.wait()


async def tell(screen: Screen, servers: Servers, accounts: int, stay: Interruption | None) -> None:
    """Tell the story on running servers; with `stay`, leave all running until then. Raises DemoFailed."""
    async with fresh_place(servers) as place, session_on(place.database_url) as session:
        with tempfile.TemporaryDirectory(prefix="matins-demo-") as folder:
            night = await last_night(session)
            with Fleet(place, Path(folder), f"0 {night.hour} * * *") as fleet:
                story = Story(screen, place, session, fleet, night, accounts)
                await story.tell()
                if stay:
                    _invite(story)
                    await stay.wait()
                await story.end()


def _invite(story: Story) -> None:
    screen, place = story.screen, story.place
    screen.heading("It stays until Ctrl-C")
    screen.fact("database", place.database_url)
    screen.fact("broker", place.broker_url)
    screen.fact("management", place.management_url or "not known")
    screen.fact("payments", f"{story.payments}/calls")
    screen.fact("console", story.console)
    for member in story.fleet.members:
        if member.alive and member.instance:
            screen.fact(member.name, member.health)
    screen.say("To look around, in another terminal and this folder:")
    for name, value in story.fleet.variables().items():
        screen.say(f"export {name}={shlex.quote(value)}")
    for command in ("status", "occurrences", f"show {story.expected.name('charge')}", "doctor"):
        screen.say(f"{sys.executable} -m trigger {command}")
