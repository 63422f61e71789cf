"""The fan-outs of this process: a bounded number beside the tick, so that a slow source holds back no other claim."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import anyio
from anyio.abc import TaskGroup

from shared import clock
from shared.job import Job
from shared.logs import logger
from shared.masking import text_of
from shared.parts import part_died
from shared.postgres import Database, is_servers_trouble, is_transient
from shared.role_names import NO_OTHER_NAMES, RoleNames
from shared.stopping import Stopping
from trigger.claim_outcome import Claim, Claimant
from trigger.fan_out import FanOut, fan_out, release, resume, take_over
from trigger.source_faults import forgive_cancelling, is_cancelled

RELEASE_SECONDS = 2.0
PAUSE = timedelta(seconds=2)
TROUBLE_SECONDS = 10.0
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
    names: RoleNames = NO_OTHER_NAMES
    waiting: list[Claim] = field(default_factory=list)
    offered: list[Claim] = field(default_factory=list)
    running: int = 0
    trouble: tuple[float, str] | None = None

    @property
    def problem(self) -> str | None:
        """Say why the server let no page be written in the last seconds; another process may go on meanwhile."""
        noted, reason = self.trouble or (0.0, None)
        return reason if clock.monotonic() < noted + TROUBLE_SECONDS else None

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
        # What runs elsewhere has no accounts, whoever has claimed it.
        ours = [name for name, job in self.jobs.items() if job.has_messages]
        while self.running < self.slots and not self.stopping.requested:
            async with self.database.session() as session:
                taken = await take_over(session, ours, self.claimant)
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
            names=self.names,
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
            with anyio.CancelScope(shield=True):
                await self._give_back(claim, timedelta(0))
            raise
        except Exception as error:
            if not is_transient(error):
                raise part_died(self.stopping, f"fan out {claim.identity}", error) from error
            _log.warning("fan-out interrupted", job=name, occurrence=str(claim.identity), reason=text_of(error))
            if is_servers_trouble(error):
                self.trouble = clock.monotonic(), f"{claim.identity}: {type(error).__name__}: {text_of(error)}"
                # No source is to blame, however long the server is unwell.
                await self._give_back(claim, PAUSE)
        else:
            _log.info("fan-out ended", job=name, occurrence=str(claim.identity), outcome=end.value)
        finally:
            self.running -= 1

    async def _give_back(self, claim: Claim, pause: timedelta) -> None:
        """Let the fan-out be gone on with after a pause; where that fails, another goes on once the lease is over."""
        try:
            with anyio.move_on_after(RELEASE_SECONDS):
                async with self.database.session() as session:
                    await release(session, claim, pause=pause)
        except Exception as error:  # noqa: BLE001 - what was to be told already is the reason for giving it back
            _log.warning("claim not given back", job=claim.identity.job, reason=text_of(error))
