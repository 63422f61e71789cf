"""The fan-outs of this process: a bounded number beside the tick, so that a slow source holds back no other claim."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from shared.job import Job
from shared.logs import logger
from shared.masking import text_of
from shared.postgres import Database, is_transient
from shared.stopping import Stopping
from trigger.claim_outcome import Claim, Claimant
from trigger.fan_out import FanOut, fan_out, release, resume, take_over
from trigger.source_faults import forgive_cancelling, is_cancelled

RELEASE_SECONDS = 2.0
_log = logger(__name__)


@dataclass(slots=True)
class FanOuts:
    """Runs at most `slots` at once; `written` is called with the job's name after each page.

    `offered` are claims that were given back for want of a slot: until another takes one, this process may go on.
    """

    database: Database
    jobs: Mapping[str, Job]
    claimant: Claimant
    slots: int
    written: Callable[[str], None]
    stopping: Stopping
    waiting: list[Claim] = field(default_factory=list)
    offered: list[Claim] = field(default_factory=list)
    running: int = 0

    def accept(self, claim: Claim) -> None:
        """Take a claim, to be worked on by the next `start_pass`."""
        self.waiting.append(claim)

    async def start_pass(self, group: TaskGroup) -> None:
        """Start what was claimed, then what others have left; give back at once what there is no slot for."""
        while self.offered and self.running < self.slots and not self.stopping.requested:
            async with self.database.session() as session:
                held = await resume(session, self.offered[0], self.claimant)
            claim = self.offered.pop(0)
            if held:
                self._start(group, claim)
        while self.waiting:
            if self.running < self.slots:
                self._start(group, self.waiting.pop(0))
                continue
            async with self.database.session() as session:
                await release(session, self.waiting[0])
            self.offered.append(self.waiting.pop(0))
        while self.running < self.slots and not self.stopping.requested:
            async with self.database.session() as session:
                taken = await take_over(session, list(self.jobs), self.claimant)
            if taken is None:
                return
            _log.info("taken over", job=taken.identity.job, occurrence=str(taken.identity), epoch=taken.epoch)
            self._start(group, taken)

    def _start(self, group: TaskGroup, claim: Claim) -> None:
        # Counted here and not in the task, which begins later.
        self.running += 1
        group.start_soon(self._run, claim, name=f"fan out {claim.identity}")

    async def _run(self, claim: Claim) -> None:
        name = claim.identity.job
        work = FanOut(
            self.database,
            self.jobs[name],
            self.claimant,
            stopping=lambda: self.stopping.requested,
            written=lambda: self.written(name),
        )
        try:
            end = await fan_out(work, claim)
        except anyio.get_cancelled_exc_class():
            if not is_cancelled():
                # The source has cancelled the task that reads it. Not given back, so that it counts as an attempt.
                forgive_cancelling(0)
                told = "it cancelled itself"
                _log.warning("fan-out interrupted", job=name, occurrence=str(claim.identity), reason=told)
                return
            with anyio.move_on_after(RELEASE_SECONDS, shield=True):
                async with self.database.session() as session:
                    await release(session, claim)
            raise
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning("fan-out interrupted", job=name, occurrence=str(claim.identity), reason=text_of(error))
        else:
            _log.info("fan-out ended", job=name, occurrence=str(claim.identity), outcome=end.value)
        finally:
            self.running -= 1
