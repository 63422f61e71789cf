"""What a worker runs for itself: when an instant of an `every` job comes while it lives, its own occurrence begins.

The row is written when it is due, and the job's code runs in the transaction that settles it. Nothing of it goes
through the broker, and nobody else takes it over: what a worker leaves behind, the sweep ends as failed.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from schemas.occurrence import Identity
from shared.calls import Window
from shared.definition import definition_of, fingerprint
from shared.fleet import Instance
from shared.job import Job
from shared.logs import logger
from shared.postgres import Database, Session
from shared.sql_files import statement
from shared.telemetry import Span, claim_span, metrics, own_span
from worker.closing import Closing
from worker.occurrences import WorkOccurrence
from worker.savepoints import CommitFailed, RoleUnavailable
from worker.settle import Fenced
from worker.tell import Teller
from worker.transaction import Batch, Runner, SessionLost
from worker.turns import Ran

OWN_JOB = statement("worker", "own_job")
OPEN_OWN = statement("worker", "open_own")
OWN_IS_OPEN = statement("worker", "own_is_open")

_MOMENT = timedelta(microseconds=1)
_log = logger(__name__)


@dataclass(slots=True)
class Own:
    """One job that this worker runs for itself; `mark` is that of its code, `started_at` the worker's own start.

    `problem` says why it cannot run now. What was due before the worker's start is none of its.
    """

    job: Job
    mark: str
    runner: Runner
    instance: Instance
    database: Database
    closing: Closing
    teller: Teller
    started_at: datetime | None = None
    problem: str | None = None
    done_through: datetime | None = None
    ran_through: datetime | None = None
    under_way: WorkOccurrence | None = None
    _fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        """Look at the definition once."""
        self._fingerprint = fingerprint(definition_of(self.job))

    async def own_pass(self, *, now: datetime | None = None) -> None:
        """Begin what is due, if anything is, and run it to its end. Raises the driver's errors."""
        if self.under_way is None:
            async with self.database.session() as session:
                await self._begin(session, now)
        if self.under_way is not None:
            await self._run(self.under_way)

    async def _begin(self, session: Session, now: datetime | None) -> None:
        known: Any = await session.fetchrow(OWN_JOB, self.job.name, self._fingerprint, self.mark, now)
        self._tell(self._hindrance(known))
        if self.problem is not None or known["held"] or known["retired_at"] is not None:
            return
        due = self._due(known["now"])
        if due is None:
            return
        state, reason = self._decided(known, due)
        identity = Identity(self.job.name, due, f"@{self.instance.id}")
        since = self.ran_through or self.job.schedule.previous_before(due) or due
        with claim_span(self.job.name, str(identity), region=self.instance.region) as span:
            row = await session.fetchrow(
                OPEN_OWN,
                self.job.name,
                due,
                self.instance.id,
                self.instance.region,
                known["revision"],
                state,
                reason,
                since,
                self.job.decisions.finish_within,
                self.instance.tzdata_version,
                span.context,
                now,
            )
            span.set(outcome=state)
        self.done_through = due
        if row is not None and state == "running":
            self.ran_through = due
            self.under_way = WorkOccurrence(row["id"], identity, Window(since, due), span.context)
            metrics.lag.record((row["claimed_at"] - due).total_seconds(), job=self.job.name)

    def _hindrance(self, known: Any) -> str | None:
        """Say what must be mended before the job can run here."""
        if known is None or known["revision"] is None:
            return "no trigger has registered this definition of it yet"
        if not known["tried"]:
            return f"no trial of this code is on record: run `python -m worker try {self.job.name} --twice`"
        if known["planned_through"] < known["now"]:
            return "no trigger has prepared the ledger for it"
        return None

    def _tell(self, problem: str | None) -> None:
        if problem is not None and problem != self.problem:
            _log.warning("a job is not run by this worker", job=self.job.name, reason=problem)
        self.problem = problem

    def _due(self, present: datetime) -> datetime | None:
        """Give the latest instant that is due and is this worker's to decide."""
        latest = self.job.schedule.previous_before(present + _MOMENT)
        after = max(one for one in (self.started_at, self.done_through) if one is not None)
        return latest if latest is not None and latest > after else None

    def _decided(self, known: Any, due: datetime) -> tuple[str, str | None]:
        if known["paused_at"] is not None:
            return "skipped", "paused"
        if known["now"] - due > self.job.decisions.start_within:
            return "missed", "not begun within start_within"
        return "running", None

    async def _run(self, occurrence: WorkOccurrence) -> None:
        batch = Batch(occurrence, 1, (self.instance.id,), occurrence.scheduled_at)
        with own_span(self.job.name, str(occurrence.identity), parent=occurrence.trace_context) as span:
            try:
                ran = await self._once(batch, span)
            except Fenced as fenced:
                self.teller.fenced(occurrence, str(fenced))
                ran = Ran(missed=batch.accounts)
            except RoleUnavailable as unavailable:
                self._tell(str(unavailable))
                return
            self.teller.settled(occurrence, 1, ran.outcomes, span)
        self.closing.touch(occurrence.id)
        if ran.outcomes or not await self._still_open(occurrence):
            self.under_way = None

    async def _once(self, batch: Batch, span: Span) -> Ran:
        """Run the job's code; what it does to its own transaction is its failure."""
        try:
            async with self.database.session() as session:
                return await self.runner.run(session, batch, trace_context=span.context)
        except (CommitFailed, SessionLost) as error:
            failure = error if isinstance(error, CommitFailed) else CommitFailed(str(error))
            async with self.database.session() as session:
                return await self.runner.record_failure(session, batch, failure, trace_context=span.context)

    async def _still_open(self, occurrence: WorkOccurrence) -> bool:
        async with self.database.session() as session:
            return bool(await session.fetchval(OWN_IS_OPEN, occurrence.id, occurrence.scheduled_at))
