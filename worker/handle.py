"""What a worker does with the messages of one occurrence: run them, run one alone, split, or hand on.

No row to be had does not mean settled. The row is read again: what is settled is acknowledged, what is busy or too
early is published to a delay and then acknowledged. Nothing is rejected for that, since rejects are counted and a
healthy message would be dead-lettered within milliseconds while another worker runs its account.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import anyio

from shared.job import Job
from shared.logs import logger
from shared.postgres import Database
from shared.published import mark_published
from shared.sql_files import statement
from shared.telemetry import Destination, Span, execute_span, metrics, settle_span
from worker.closing import Closing
from worker.gate import Gate
from worker.occurrences import Occurrences, WorkOccurrence
from worker.outcome import Outcome
from worker.outside import KillsWorkers, OutsideRunner, Started
from worker.parcel import GivenUp, NotHandedOn, Parcel
from worker.savepoints import CommitFailed
from worker.send import Sender
from worker.settle import Again, Fenced
from worker.tell import Teller
from worker.transaction import Batch, Runner, SessionLost
from worker.turns import Ran

START_ALONE = statement("worker", "start_alone")
UNDO_START = statement("worker", "undo_start")
READ_MISSED = statement("worker", "read_missed")
BUSY_SECONDS = 1.0
HELD_SECONDS = 30.0
UNDO_SECONDS = 2.0
_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Handling:
    """Everything that handling one job's messages needs, in one worker.

    `effects` is for the job's code, `database` for what else a message needs, `background` for what must not wait.
    """

    job: Job
    runner: Runner | OutsideRunner
    database: Database
    background: Database
    sender: Sender
    occurrences: Occurrences
    closing: Closing
    gate: Gate
    teller: Teller
    max_crashes: int
    effects: Database

    async def handle(self, parcels: Sequence[Parcel]) -> None:
        """Do what the messages of one occurrence and generation ask for, and acknowledge them.

        Raises NotHandedOn or the driver's errors when a server is not to be had: then nothing was acknowledged, and it
        can all be done again.
        """
        first = parcels[0].message
        occurrence = self.occurrences.recall(first)
        if occurrence is None:
            async with self.database.session() as session:
                occurrence = await self.occurrences.find(session, first)
        try:
            if occurrence is None:
                self._unknown(parcels[0])
            elif not parcels[0].suspect:
                async with self.gate.together():
                    await self._execute(parcels, occurrence)
            elif len(first.accounts) > 1:
                await self._hand_on(parcels[0], occurrence, first.accounts, wait=0, isolated=True)
            else:
                await self._alone(parcels[0], occurrence)
        except GivenUp:
            return
        for parcel in parcels:
            await parcel.delivery.ack()

    def _unknown(self, parcel: Parcel) -> None:
        _log.warning("message without its occurrence", job=self.job.name, occurrence_id=parcel.message.occurrence_id)
        metrics.accounts.add(len(parcel.message.accounts), job=self.job.name, outcome="unknown")

    async def _alone(self, parcel: Parcel, occurrence: WorkOccurrence) -> None:
        async with self.gate.alone():
            try:
                if isinstance(self.runner, Runner) and not parcel.start_committed:
                    await self._start_alone(parcel, occurrence)
                await self._execute([parcel], occurrence)
            except SessionLost:
                # As good as a dead worker: the next start is counted too, so that it cannot go on for ever.
                parcel.start_committed = False
                raise
            except anyio.get_cancelled_exc_class():
                # Cut off by the drain: the worker did not die of it, so the start must not count.
                with anyio.move_on_after(UNDO_SECONDS, shield=True):
                    await self._undo_start(parcel, occurrence)
                raise

    async def _start_alone(self, parcel: Parcel, occurrence: WorkOccurrence) -> None:
        """Commit the start of a suspect account: if it ends this process too, the ledger will show it."""
        message = parcel.message
        async with self.database.session() as session:
            row = await session.fetchrow(
                START_ALONE,
                occurrence.id,
                occurrence.scheduled_at,
                message.accounts[0],
                message.generation,
                None,
                self.max_crashes,
            )
        parcel.start_committed = row is not None and row["allowed"]
        if row is not None and not row["allowed"]:
            reason = f"started {row['starts']} times, and each time the worker ended"
            await self._give_up(parcel, occurrence, reason)

    async def _undo_start(self, parcel: Parcel, occurrence: WorkOccurrence) -> None:
        if parcel.start_committed:
            message = parcel.message
            async with self.background.session() as session:
                await session.execute(
                    UNDO_START, occurrence.id, occurrence.scheduled_at, message.accounts[0], message.generation
                )
            parcel.start_committed = False

    async def _give_up(self, parcel: Parcel, occurrence: WorkOccurrence, reason: str) -> None:
        """Have the broker dead-letter the message: it is parked for people, and accounted for by the reader."""
        self.teller.kills_workers(occurrence, parcel.message.accounts[0], reason)
        await parcel.delivery.reject(requeue=False)
        raise GivenUp(reason)

    async def _execute(self, parcels: Sequence[Parcel], occurrence: WorkOccurrence) -> None:
        queue = self.job.queue
        destination = Destination(self.sender.topology.work_exchange, queue, self.sender.topology.work_queue(queue))
        with execute_span(
            self.job.name,
            destination,
            occurrence=str(occurrence.identity),
            message_id=parcels[0].delivery.message_id or "",
            links=dict.fromkeys(parcel.context for parcel in parcels),
            generation=parcels[0].message.generation,
            isolated=parcels[0].suspect,
        ) as span:
            # What a copy of a message finds unless there is something to tell.
            span.set(outcome="settled")
            if isinstance(self.runner, OutsideRunner):
                await self._outside(self.runner, parcels[0], occurrence, span)
            else:
                await self._transaction(self.runner, parcels, occurrence, span)

    async def _transaction(
        self, runner: Runner, parcels: Sequence[Parcel], occurrence: WorkOccurrence, span: Span
    ) -> None:
        messages = [parcel.message for parcel in parcels]
        accounts = tuple(dict.fromkeys(account for message in messages for account in message.accounts))
        batch = Batch(occurrence, messages[0].generation, accounts, max(one.published_at for one in messages))
        try:
            ran = await self._run(runner, batch, span)
            await self._after(occurrence, batch.generation, ran, span)
            missed = ran.missed
            if missed or ran.waits:
                # Another copy has the row, or it must wait: a start of this one that was counted ended no worker.
                await self._undo_start(parcels[0], occurrence)
        except Fenced as fenced:
            self.teller.fenced(occurrence, str(fenced))
            missed = accounts
        except CommitFailed as failed:
            missed = await self._singly(runner, batch, failed, span)
        await self._missed(parcels, occurrence, missed)

    async def _run(self, runner: Runner, batch: Batch, span: Span) -> Ran:
        async with self.effects.session() as session:
            try:
                settling = partial(
                    settle_span, self.job.name, str(batch.occurrence.identity), accounts=len(batch.accounts)
                )
                return await runner.run(session, batch, trace_context=span.context, settling=settling)
            except SessionLost as lost:
                # A worker that was frozen finds its transaction ended by the server: its late write did nothing.
                self.teller.fenced(batch.occurrence, f"the transaction was lost: {lost}")
                raise

    async def _singly(self, runner: Runner, batch: Batch, failed: CommitFailed, span: Span) -> tuple[str, ...]:
        """The commit failed: do each account in a transaction of its own, so that only the guilty one is charged."""
        missed: list[str] = []
        for account in batch.accounts:
            single = Batch(batch.occurrence, batch.generation, (account,), batch.published_at)
            try:
                if len(batch.accounts) == 1:
                    raise failed
                ran = await self._run(runner, single, span)
            except CommitFailed as own:
                async with self.database.session() as session:
                    ran = await runner.record_failure(session, single, own, trace_context=span.context)
            except Fenced as fenced:
                self.teller.fenced(batch.occurrence, str(fenced))
                ran = Ran(missed=single.accounts)
            await self._after(batch.occurrence, batch.generation, ran, span)
            missed += ran.missed
        return tuple(missed)

    async def _outside(self, runner: OutsideRunner, parcel: Parcel, occurrence: WorkOccurrence, span: Span) -> None:
        message, account = parcel.message, parcel.message.accounts[0]
        try:
            async with self.database.session() as session:
                started = await runner.start(session, occurrence, account, message.generation, message.published_at)
            if isinstance(started, Ran):
                await self._after(occurrence, message.generation, started, span)
            elif started is None:
                await self._missed([parcel], occurrence, [account])
            if not isinstance(started, Started):
                return
            try:
                outcome, value = await runner.call(self.background, started)
            except anyio.get_cancelled_exc_class():
                with anyio.move_on_after(UNDO_SECONDS, shield=True):
                    await runner.hand_back(self.background, started)
                raise
            with settle_span(self.job.name, str(occurrence.identity)):
                again = await self._settle_outside(runner, started, outcome, value, span.context)
        except KillsWorkers as killer:
            await self._give_up(parcel, occurrence, str(killer))
        except Fenced as fenced:
            self.teller.fenced(occurrence, str(fenced))
            await self._missed([parcel], occurrence, [account])
        else:
            await self._after(occurrence, message.generation, Ran({account: outcome}, again), span)

    async def _settle_outside(
        self, runner: OutsideRunner, started: Started, outcome: Outcome, value: object, context: str
    ) -> list[Again]:
        """Settle; the effect has happened, so a drain that cuts it off leaves it a moment more. Raises Fenced."""
        try:
            return await runner.settle_patiently(self.background, started, outcome, value, context)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(UNDO_SECONDS, shield=True):
                await runner.settle_patiently(self.background, started, outcome, value, context)
            raise

    async def _after(self, occurrence: WorkOccurrence, generation: int, ran: Ran, span: Span) -> None:
        """Tell what happened, publish the further tries, and have the occurrence looked at."""
        self.closing.touch(occurrence.id)
        self.teller.settled(occurrence, generation, ran.outcomes, span)
        published = await self.sender.publish_again(occurrence, generation, self.job.queue, ran.again)
        if published:
            async with self.database.session() as session:
                await mark_published(
                    session,
                    (occurrence.id, occurrence.scheduled_at),
                    [one.account for one in published],
                    [one.epoch for one in published],
                    max(one.settled_at for one in published),
                )

    async def _missed(self, parcels: Sequence[Parcel], occurrence: WorkOccurrence, missed: Sequence[str]) -> None:
        """Hand on the accounts whose row is busy or not yet due; all others are settled."""
        if not missed:
            return
        async with self.database.session() as session:
            rows = await session.fetch(READ_MISSED, occurrence.id, occurrence.scheduled_at, list(missed), None)
        generation = parcels[0].message.generation
        waits = {
            row["account"]: HELD_SECONDS if row["held"] else row["early"]
            for row in rows
            if row["state"] in {"pending", "running"} and row["generation"] == generation and not row["ended"]
        }
        for parcel in parcels:
            accounts = [account for account in parcel.message.accounts if account in waits]
            if accounts:
                wait = max(BUSY_SECONDS, *(waits[account] for account in accounts))
                await self._hand_on(parcel, occurrence, accounts, wait=wait, isolated=parcel.message.isolated)

    async def isolate(self, parcels: Sequence[Parcel]) -> None:
        """Have each account of messages that cost several sessions stand alone. Raises NotHandedOn."""
        for parcel in parcels:
            occurrence = self.occurrences.recall(parcel.message)
            if occurrence is not None:
                await self._hand_on(parcel, occurrence, parcel.message.accounts, wait=0, isolated=True)
            await parcel.delivery.ack()

    async def _hand_on(
        self, parcel: Parcel, occurrence: WorkOccurrence, accounts: Sequence[str], *, wait: float, isolated: bool
    ) -> None:
        identity = str(occurrence.identity)
        published = await self.sender.hand_on(
            parcel.message, self.job.queue, identity, parcel.context, wait=wait, accounts=accounts, isolated=isolated
        )
        if not published:
            problem = f"{identity}: the broker did not confirm the message that hands on {len(accounts)} accounts"
            raise NotHandedOn(problem)
