"""One run: a seed, a profile, the processes, and the adversary that crashes, freezes and cuts them off."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import asyncpg

from shared import clock
from shared.broker import QueueDepth
from shared.definition import definition_of, fingerprint
from shared.job import EveryWorker
from tests.model import steps
from tests.model.arrows import arrow_of
from tests.model.broker import ModelBroker
from tests.model.checks import findings, open_work
from tests.model.database import STATEMENT_SECONDS, ModelSession, Server, give_back
from tests.model.jobs import accounts_of, job_of
from tests.model.own import OwnWorkerProcess
from tests.model.process import LEASE, OperatorProcess, Process, TriggerProcess, WorkerProcess
from tests.model.profile import Profile
from tests.model.turns import PROCESS, Turn, Turns
from tests.model.watch import Watch
from worker.evidence import record_trial

BEGIN = datetime(2026, 8, 24, 22, 59, tzinfo=UTC)
ROUNDS = 90
# Of a round in which every process does its passes once; the longest takes some hundreds.
MOST_TURNS = 2000
# What an account may end in a run: its starts, the copies of its message, in every occurrence and generation.
MOST_KILLS = 12
# Longer than any handler of the model, and its margin.
SILENCE_SECONDS = 120.0
# A mutant that is no statement proves nothing.
NO_STATEMENT = (asyncpg.SyntaxOrAccessError, NameError)
# What skips locked rows holds nobody up, and is held up by nobody.
NEVER_WAIT = frozenset(
    {
        "mark_published",
        "again_rows",
        "start_rows",
        "lock_accounts",
        "start_alone",
        "start_outside",
        "sweep_expired",
        "sweep_lost",
        "cancel_pending",
        "take_over",
    }
)
ROUND = timedelta(seconds=31)
PASSES = ("tick", "publish pass", "sweep pass", "beat", "close pass", "own pass")
_BUSY = {"deliver", "dead letter", "sleep", "operate"}


class Violated(Exception):
    """The run broke a promise; it goes no further."""


@dataclass(eq=False)
class World:
    """The state of a run."""

    server: Server
    profile: Profile
    seed: int
    mutations: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 - a seed makes the run
        self.now = BEGIN + timedelta(seconds=self.profile.head_start)
        self.turns = Turns(self.server.locks)
        self.broker = ModelBroker(self)
        self.watch = Watch(self)
        self.processes: list[Process] = []
        self.accounts = accounts_of(self.random, self.profile.accounts, dict(self.profile.kinds))
        self.jobs = [job_of(self, self.profile.mode, minute) for minute in ((0, 5) if self.profile.revisions else (0,))]
        self.provider: dict[str, int] = {}
        self.named: list[tuple[int, str]] = []
        self.violations: list[str] = []
        self.crashes: dict[str, int] = {}
        self.lose_reply_of: set[str] = set()
        self.lease = LEASE
        self.claimers: list[Process] = []
        self.marks: list[tuple[Any, ...]] = []
        self.marked: set[tuple[int, str, int]] = set()
        self.faults = True
        self.picks = 0
        self.made = 0
        self.poisoned = 0
        self.trace: list[str] = []
        self.peaceful = not (
            self.profile.crash
            or self.profile.freeze
            or self.profile.cut
            or self.profile.lost_reply
            or self.profile.channel
            or self.profile.lost
            or self.profile.focus
        )
        self._last: Turn | None = None
        self._doomed: list[Process] = []
        self._pushed: datetime | None = None

    def violation(self, told: str, error: BaseException | None = None) -> None:
        """Note a broken promise."""
        if isinstance(error, NO_STATEMENT):
            raise error
        if error is not None:
            import traceback  # noqa: PLC0415 - only in trouble

            told += "\n" + "".join(traceback.format_exception(error))
        self.violations.append(told)

    def mutated(self, label: str, query: str) -> str:
        """Give the statement that is sent for one of the product's."""
        return self.mutations.get(label, query)

    def after_commit(self, session: ModelSession, call: Callable[..., None], *arguments: Any) -> None:
        """Call when what the session has said so far holds."""
        if session.is_in_transaction():
            session.on_commit.append(lambda: call(*arguments))
        else:
            call(*arguments)

    async def depth(self) -> QueueDepth:
        """Look into the work queue, as a process does."""
        PROCESS.get().check()
        return self.broker.depth()

    def seconds(self) -> float:
        """Give the model's time, in seconds, for what the product measures by itself."""
        return (self.now - BEGIN).total_seconds()

    async def sleep(self, seconds: float) -> None:
        """Wait by the model's clock."""
        until = self.now + timedelta(seconds=seconds)
        await self.turns.take("sleep", idle=True, ready=lambda: self.now >= until)

    async def poison(self, process: Process) -> None:
        """Have the account end its worker."""
        self._doomed.append(process)
        self.poisoned += 1
        if self.poisoned > MOST_KILLS * len(self.accounts):
            self.violation(f"accounts have ended {self.poisoned} workers")
        await self.turns.take("poison")

    async def run(self) -> list[str]:
        """Run it all; give the violations."""
        sleep, monotonic = clock.sleep, clock.monotonic
        clock.sleep, clock.monotonic = self.sleep, self.seconds
        try:
            await self.server.empty()
            await self.server.step(self.now, back=True)
            for _ in range(self.profile.triggers):
                self._trigger()
            for _ in range(self.profile.workers):
                self._worker()
            if self.profile.operator:
                self._make(OperatorProcess)
            await self._know_the_trial()
            await self._chaos()
            if not self.violations:
                await self._calm()
            if not self.violations:
                self.violations += await findings(self)
        finally:
            clock.sleep, clock.monotonic = sleep, monotonic
            await self._end()
        return self.violations

    async def _know_the_trial(self) -> None:
        """Have it on record that what each worker runs for itself may run any number of times."""
        for job in self.jobs:
            if isinstance(job.handler, EveryWorker) and not isinstance(job.handler.handler, str):
                await record_trial(self.server.control, job, job.handler.handler, "model")

    async def _chaos(self) -> None:
        while self.picks < self.profile.turns and not self.violations:
            await self._quiet()
            turn = self._pick()
            self._pass_time(turn)
            await self._tell_time()
            if turn is None:
                self.picks += 1
            elif not await self._harm(turn):
                self._release(turn)
            if self.picks % 60 == 0:
                self.violations += await findings(self, during=True)

    async def _calm(self) -> None:
        """End the faults; what is still frozen stays so for good, and everything must come to its end all the same."""
        self.faults = False
        self.lose_reply_of.clear()
        for process in list(self.processes):
            if process.frozen and self.random.random() < 0.5:
                process.frozen_until = datetime.max.replace(tzinfo=UTC)
                self.broker.drop(process)
            else:
                process.frozen_until = None
        await self._only_new_code()
        for _ in range(ROUNDS):
            await self._round()
            if self.violations or not await open_work(self):
                return
            self.now += ROUND
            await self._tell_time()
        self.violations.append(f"still open after {ROUNDS} rounds without a fault: {await open_work(self)}")

    async def _only_new_code(self) -> None:
        for process in list(self.processes):
            if isinstance(process, TriggerProcess) and process.job is not self.jobs[-1] and not process.frozen:
                await self.kill(process)
        for kind, make in ((TriggerProcess, self._trigger), (self._worker_kind, self._worker)):
            while not [one for one in self.processes if isinstance(one, kind) and not one.frozen]:
                make()
        if self.watch.paused and not [
            one for one in self.processes if isinstance(one, OperatorProcess) and not one.frozen
        ]:
            self._make(OperatorProcess)

    async def _round(self) -> None:
        """Let each process that lives do its passes once, and everything that follows."""
        chosen = [
            next(one for one in self.processes if isinstance(one, kind) and not one.frozen)
            for kind in (TriggerProcess, self._worker_kind)
        ]
        done: set[tuple[str, int, str]] = set()
        for _ in range(MOST_TURNS):
            await self._quiet()
            if self.violations:
                return
            eligible = self._eligible()
            busy = [one for one in eligible if not one.idle or one.step in _BUSY]
            passes = [one for one in eligible if one.process in chosen and one.step in PASSES]
            fresh = [one for one in passes if one.order not in done]
            if not busy and not fresh:
                return
            turn = (busy or fresh)[0]
            if turn.step in PASSES:
                done.add(turn.order)
            self._release(turn)
        self.violation(f"a round without a fault is not over after {MOST_TURNS} turns")

    async def _quiet(self) -> None:
        await self.turns.quiesce()
        for process in self.processes:
            for session in process.sessions:
                if session.at_server and session.saying in NEVER_WAIT:
                    self.violation(f"{session.saying} waits for a lock")
        while self._doomed:
            process = self._doomed.pop()
            if not process.dead:
                self.watch.count("poisoned")
                await self.kill(process)
                self._replace(process)
        await self._look_at_marks()
        await self._look_at_claimers()
        await self._time_out()
        self.turns.forget()

    async def _look_at_marks(self) -> None:
        """See that each row that was just marked is the one that was published, and no later one."""
        while self.marks:
            given = self.marks.pop()
            self.marked.update((given[0], *one) for one in zip(given[2], given[3], strict=True))
            self.violations += [
                f"{row['account']} was marked at epoch {row['epoch']}, and published before"
                for row in await self.server.control.fetch(_WRONG_MARKS, *given)
                if (given[0], row["account"], row["epoch"]) not in self.marked
            ]

    async def _look_at_claimers(self) -> None:
        """See that only the current release plans and claims: the job's row is locked until it commits."""
        while self.claimers:
            process = self.claimers.pop()
            if isinstance(process, TriggerProcess) and not process.dead:
                current = await self.server.control.fetchval("select fingerprint from matins.job")
                if current != fingerprint(definition_of(process.job)):
                    self.violation(f"{process.name} plans or claims with a definition that is not the current one")

    async def _time_out(self) -> None:
        """End what the server or the driver would end by now."""
        for process in self.processes:
            for session in list(process.sessions):
                waited = (self.now - session.since).total_seconds()
                if session.at_server and waited > STATEMENT_SECONDS:
                    await self.server.control.fetchval("select pg_cancel_backend($1)", self.server.pids[session.raw])
                    await self.turns.quiesce()
                elif session.is_in_transaction() and session.idle_limit is None and waited > SILENCE_SECONDS:
                    self.violation(
                        f"{process.name} is silent in a transaction for {waited:.0f} s, and holds {session.said}"
                    )
                elif (
                    session.idle_limit is not None
                    and not session.at_server
                    and session.is_in_transaction()
                    and waited > session.idle_limit.total_seconds()
                ):
                    self.watch.count("idle sessions ended")
                    await self.lose(session)

    def _eligible(self) -> list[Turn]:
        found = [
            one for one in self.turns.waiting if not one.released.done() and not one.process.frozen and one.ready()
        ]
        return sorted(found, key=lambda one: one.order)

    def _pick(self) -> Turn | None:
        eligible = self._eligible()
        if not eligible:
            return None
        same = [one for one in eligible if self._last is not None and one.line is self._last.line]
        if same and not same[0].idle and self.random.random() < self.profile.burst:
            return same[0]
        busy = [one for one in eligible if not one.idle or one.step == "deliver"]
        if busy and self.random.random() < 0.8:
            return self.random.choice(busy)
        weights = [self.profile.eager if one.step == "operate" else _WEIGHTS.get(one.step, 6) for one in eligible]
        return self.random.choices(eligible, weights)[0]

    def _release(self, turn: Turn) -> None:
        self.picks += 1
        self._last = turn
        turn.line.intent = steps.STEPS.get(turn.step, turn.line.intent)
        self.trace.append(
            f"{(self.now - BEGIN).total_seconds():.2f} {turn.process.name}/{turn.line.number} {turn.step}"
        )
        turn.released.set_result(None)

    def _pass_time(self, turn: Turn | None) -> None:
        restless = 1 if turn is not None and not turn.idle else 3
        if self.random.random() < self.profile.time * restless:
            if self.random.random() < self.profile.jump:
                self.now += timedelta(seconds=self.random.choice(self.profile.jumps))
            else:
                self.now += timedelta(seconds=self.random.choice(self.profile.steps))

    async def _tell_time(self) -> None:
        if self._pushed != self.now:
            await self.server.step(self.now)
            self._pushed = self.now

    async def _harm(self, turn: Turn) -> bool:
        """Perhaps do something to the process whose turn it is; True when the turn is gone."""
        profile, process = self.profile, turn.process
        fault, chance = profile.focus.get(turn.step, ("", 0.0))
        draw = self.random.random()

        def happens(name: str, rate: float) -> bool:
            return draw < max(rate, chance if fault == name else 0.0)

        sent = next((one for one in process.sessions if one.at_server is False), None)
        is_hunted = bool(profile.hunted) and arrow_of(self._crossing(turn)) == profile.hunted
        if happens("crash", 0.5 if is_hunted else profile.crash):
            await self.crash(turn)
            return True
        if happens("freeze", profile.freeze + profile.crash):
            process.frozen_until = self.now + timedelta(seconds=self.random.choice((3, 40, 40, 100, 400, 2000)))
            self.watch.count("freezes")
            self.watch.interrupted(process, ended=False)
            self._note(f"{process.name} freezes before {turn.step}")
            if self.random.random() < 0.7:
                self.broker.drop(process)
            return True
        draw = self.random.random()
        if happens("cut", profile.cut) and sent is not None:
            self.watch.count("cut sessions")
            self._note(f"{process.name} loses a session before {turn.step}")
            await self.lose(self.random.choice(list(process.sessions)))
        elif happens("lost reply", profile.lost_reply) and turn.step not in {"begin", "lock_job"}:
            self.watch.count("lost replies")
            self.lose_reply_of = {turn.step} if turn.step in steps.FILES or turn.step == "commit" else set()
        elif happens("channel", profile.channel):
            self.watch.count("lost channels")
            self._note(f"{process.name} loses its channel before {turn.step}")
            self.watch.interrupted(process, ended=False)
            self.broker.drop(process)
        return False

    def _crossing(self, turn: Turn) -> str:
        following = steps.STEPS.get(turn.step, turn.line.intent if turn.step in {"begin", "lock_job"} else turn.step)
        return f"{turn.line.last} → {following}"

    async def crash(self, turn: Turn) -> None:
        """Kill a process just before it takes a step."""
        arrow = self._crossing(turn)
        self.crashes[arrow] = self.crashes.get(arrow, 0) + 1
        self._note(f"{turn.process.name} dies before {turn.step}")
        sending = turn.process.sending
        for outgoing in sending[: self.random.randrange(len(sending) + 1)]:
            self.broker.accept(outgoing, turn.step)
        await self.kill(turn.process)
        self._replace(turn.process)

    async def kill(self, process: Process) -> None:
        """End a process as SIGKILL does: nothing of it runs on, and what it had not committed is undone."""
        self.watch.interrupted(process, ended=True)
        process.dead = True
        self.processes.remove(process)
        sessions = list(process.sessions)
        process.sessions.clear()
        for turn in [one for one in self.turns.waiting if one.process is process]:
            if not turn.released.done():
                turn.released.set_result(None)
        assert process.task is not None
        process.task.cancel()
        for session in sessions:
            await give_back(self.server, session)
        await asyncio.wait({process.task}, timeout=5)
        if not process.task.done():
            self.violation(f"{process.name} does not die")
        self.broker.drop(process)

    async def lose(self, session: ModelSession) -> None:
        """End a session at the server; its process finds out at its next statement."""
        self.watch.interrupted(session.process, ended=False)
        session.over = True
        await self.server.end_backend(session.raw)

    def _replace(self, process: Process) -> None:
        if isinstance(process, TriggerProcess):
            self._trigger()
        elif isinstance(process, WorkerProcess | OwnWorkerProcess):
            self._worker()
        else:
            self._make(OperatorProcess)

    def _trigger(self) -> None:
        # Old and new code live side by side; what comes later is more often the new.
        old = self.random.random() < 0.5
        self._make(TriggerProcess, job=self.jobs[0 if old and self.faults else -1])

    def _worker(self) -> None:
        self._make(self._worker_kind, job=self.jobs[-1])

    @property
    def _worker_kind(self) -> type[WorkerProcess | OwnWorkerProcess]:
        return OwnWorkerProcess if self.profile.mode == "every" else WorkerProcess

    def _make(self, kind: Callable[..., Process], **more: Any) -> None:
        self.made += 1
        process = kind(self, f"{self.made:02d}-{getattr(kind, '__name__', '')[:7].lower()}", **more)
        self.processes.append(process)
        process.start()

    def _note(self, told: str) -> None:
        self.trace.append(f"{(self.now - BEGIN).total_seconds():.2f} *** {told}")

    async def _end(self) -> None:
        for process in list(self.processes):
            await self.kill(process)
        await self.turns.quiesce()


_WRONG_MARKS = """
    select l.account, l.epoch from matins.ledger l
      join unnest($3::text[], $4::bigint[]) as given (account, epoch) on given.account = l.account
     where l.occurrence_id = $1 and l.scheduled_at = $2 and l.published_at = $5 and l.epoch <> given.epoch
       and l.state = 'pending'"""
_WEIGHTS = {"beat": 0.3, "tick": 3, "sweep pass": 2, "publish pass": 4, "close pass": 6, "sleep": 4}
