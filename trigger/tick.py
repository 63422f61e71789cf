"""The tick: every job is registered, planned ahead, and what is due of it is decided.

A job whose definition or rows make trouble is named and tried again at the next tick; the other jobs go on.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from shared.job import Job
from shared.logs import logger
from shared.postgres import Database, Session, is_transient
from shared.telemetry import metrics
from trigger.attempting import attempted_now
from trigger.backfill_pass import advance_backfill, backfilling_jobs
from trigger.check_in import close_silent
from trigger.claim import claim_due
from trigger.claim_outcome import Claim, Claimant, ClaimOutcome, Nothing, Overlapped, Stale, Won
from trigger.failures import failing_jobs, pause_failing
from trigger.leader import Leadership
from trigger.plan import plan_ahead, short_plans
from trigger.register import JobRetired, register, register_if_abandoned
from trigger.sweep import cancel_ended

_log = logger(__name__)


@dataclass(slots=True)
class Tick:
    """The jobs of this process, with the revision of each that may plan and claim.

    `stale` jobs have another current definition, as during a rolling deploy, or are `retired`, which is no trouble;
    `troubles` says what is wrong with others.
    `now` stands for the database's clock, in tests alone.
    """

    database: Database
    jobs: Mapping[str, Job]
    claimant: Claimant
    revisions: dict[str, int] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)
    retired: set[str] = field(default_factory=set)
    troubles: dict[str, str] = field(default_factory=dict)
    now: datetime | None = None
    leadership: Leadership = field(init=False)

    def __post_init__(self) -> None:
        """Lead nothing yet."""
        self.leadership = Leadership(self.claimant.instance, self.claimant.lease)

    async def register_pass(self) -> bool:
        """Register what isn't registered, and see whether stale definitions are current again; tell of any change."""
        before = dict(self.revisions)
        for name, job in self.jobs.items():
            if name in self.revisions and name not in self.stale:
                continue
            async with self.database.session() as session:
                await self._guarded(name, self._register(session, job))
        return before != self.revisions

    async def tick_pass(self, won: Callable[[Claim], None]) -> None:
        """Plan ahead and claim what is due; `won` takes each claim."""
        current = [name for name in self.revisions if name not in self.stale]
        async with self.database.session() as session:
            short = await short_plans(session, [self.jobs[name] for name in current], now=self.now)
            for name in sorted(short):
                await self._guarded(name, self._plan(session, name))
            for name in await failing_jobs(session, [self.jobs[name] for name in current]):
                await self._guarded(name, pause_failing(session, name, self.claimant.instance))
            for name in sorted(await self._attempted(session, current)):
                await self._guarded(name, self._claim(session, name, won))
            for name in await backfilling_jobs(session, current):
                await self._guarded(name, self._backfill(session, name, won))
            await close_silent(session, self.claimant.instance, now=self.now)
        # Only a pass that has come to here has its lead renewed by the next one.
        self.leadership.passed(self.troubles)

    async def resign(self) -> None:
        """Give back what this process leads; the tick's last act."""
        async with self.database.session() as session:
            await self.leadership.resign(session)

    async def _attempted(self, session: Session, current: list[str]) -> set[str]:
        before = set(self.leadership.led)
        found = await attempted_now(
            session, {name: self.jobs[name] for name in current}, self.claimant, self.leadership, now=self.now
        )
        for name in before - self.leadership.led.keys():
            # Another's to claim now; whether this process could is seen when it leads again.
            self.troubles.pop(name, None)
        return found

    async def _register(self, session: Session, job: Job) -> None:
        instance = self.claimant.instance
        registration = register_if_abandoned if job.name in self.stale else register
        try:
            registered = await registration(session, job, instance=instance, now=self.now)
        except JobRetired as told:
            if job.name not in self.retired:
                self.retired.add(job.name)
                _log.warning("job is retired", job=job.name, reason=str(told))
            return
        if registered is None:
            return
        self.stale.discard(job.name)
        self.retired.discard(job.name)
        self.revisions[job.name] = registered.revision
        _log.info("job registered", job=job.name, revision=registered.revision, changed=registered.changed)

    async def _plan(self, session: Session, name: str) -> None:
        more = True
        while more:
            planned = await plan_ahead(
                session, self.jobs[name], self.revisions[name], now=self.now, by=self.claimant.instance
            )
            more = planned.more
            if planned.stale:
                self._mark_stale(name, None)
            if planned.written:
                _log.debug("planned ahead", job=name, occurrences=planned.written)

    async def _claim(self, session: Session, name: str, won: Callable[[Claim], None]) -> None:
        outcome = await self._attempt(session, name)
        while isinstance(outcome, Nothing) and outcome.more:
            await self._plan(session, name)
            if name in self.stale:
                return
            outcome = await self._attempt(session, name)
        if isinstance(outcome, Stale):
            self._mark_stale(name, outcome.revision)
        elif isinstance(outcome, Won):
            claim = outcome.claim
            lag = claim.lag.total_seconds()
            _log.info("claimed", job=name, occurrence=str(claim.identity), epoch=claim.epoch, lag_seconds=round(lag, 3))
            won(claim)
        elif isinstance(outcome, Overlapped) and outcome.ended:
            _log.info("cancelled, so that the next can start", job=name, occurrence=outcome.active)
            await cancel_ended(session, outcome.ended, by=self.claimant.instance)

    async def _backfill(self, session: Session, name: str, won: Callable[[Claim], None]) -> None:
        more = True
        while more:
            outcome = await advance_backfill(session, name, self.revisions[name], self.claimant)
            more = isinstance(outcome, Won) or outcome.more
            if isinstance(outcome, Won):
                _log.info("claimed", job=name, occurrence=str(outcome.claim.identity), epoch=outcome.claim.epoch)
                won(outcome.claim)

    async def _attempt(self, session: Session, name: str) -> ClaimOutcome:
        return await claim_due(session, self.jobs[name], self.revisions[name], self.claimant, now=self.now)

    def _mark_stale(self, name: str, revision: int | None) -> None:
        self.stale.add(name)
        _log.warning("another definition is current", job=name, mine=self.revisions[name], current=revision)

    async def _guarded(self, name: str, step: Awaitable[None]) -> None:
        """Take a step of one job; trouble that is its own is kept, trouble of the database is everybody's."""
        try:
            await step
        except Exception as error:
            if is_transient(error):
                raise
            reason = f"{type(error).__name__}: {error}"
            if self.troubles.get(name) != reason:
                metrics.job_troubles.add(1, job=name)
                _log.error("a job cannot be planned or claimed", job=name, reason=reason)
            self.troubles[name] = reason
        else:
            self.troubles.pop(name, None)
