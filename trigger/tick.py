"""The tick: every job is registered, planned ahead, and what is due of it is decided.

A job whose definition or rows make trouble is named and tried again at the next tick; the other jobs go on.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from shared.job import Job
from shared.logs import logger
from shared.postgres import Database, Session, is_transient
from trigger.claim import claim_due, due_jobs
from trigger.claim_outcome import Claim, Claimant, Nothing, Stale, Won
from trigger.plan import plan_ahead, short_plans
from trigger.register import register, register_if_abandoned

_log = logger(__name__)


@dataclass(slots=True)
class Tick:
    """The jobs of this process, with the revision of each that may plan and claim.

    `stale` jobs have another current definition, as during a rolling deploy; `troubles` says what is wrong with others.
    """

    database: Database
    jobs: Mapping[str, Job]
    claimant: Claimant
    revisions: dict[str, int] = field(default_factory=dict)
    stale: set[str] = field(default_factory=set)
    troubles: dict[str, str] = field(default_factory=dict)

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
            short = await short_plans(session, [self.jobs[name] for name in current])
            for name in sorted(short):
                await self._guarded(name, self._plan(session, name))
            for name in sorted(await due_jobs(session, current, self.claimant.instance)):
                await self._guarded(name, self._claim(session, name, won))

    async def _register(self, session: Session, job: Job) -> None:
        instance = self.claimant.instance
        if job.name in self.stale:
            registered = await register_if_abandoned(session, job, instance=instance)
        else:
            registered = await register(session, job, instance=instance)
        if registered is None:
            return
        self.stale.discard(job.name)
        self.revisions[job.name] = registered.revision
        _log.info("job registered", job=job.name, revision=registered.revision, changed=registered.changed)

    async def _plan(self, session: Session, name: str) -> None:
        more = True
        while more:
            planned = await plan_ahead(session, self.jobs[name], self.revisions[name])
            more = planned.more
            if planned.stale:
                self._mark_stale(name, None)
            if planned.written:
                _log.debug("planned ahead", job=name, occurrences=planned.written)

    async def _claim(self, session: Session, name: str, won: Callable[[Claim], None]) -> None:
        outcome = await claim_due(session, self.jobs[name], self.revisions[name], self.claimant)
        while isinstance(outcome, Nothing) and outcome.more:
            await self._plan(session, name)
            if name in self.stale:
                return
            outcome = await claim_due(session, self.jobs[name], self.revisions[name], self.claimant)
        if isinstance(outcome, Stale):
            self._mark_stale(name, outcome.revision)
        elif isinstance(outcome, Won):
            claim = outcome.claim
            _log.info("claimed", job=name, occurrence=str(claim.identity), epoch=claim.epoch)
            won(claim)

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
                _log.error("a job cannot be planned or claimed", job=name, reason=reason)
            self.troubles[name] = reason
        else:
            self.troubles.pop(name, None)
