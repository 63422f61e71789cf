"""Leading a job: of the triggers that declare it as it is now, one attempts, for as long as it gets on.

The right is a row with a time, so that it works through a pooler too, and the claim beneath decides: two that lead
for a moment, as after a freeze, still claim once. The pass that claims renews it, and only if the pass before it has
ended well: a trigger that lives and gets nowhere loses it within the lease, and another takes it at its next pass.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shared.logs import logger
from shared.postgres import Session
from shared.sql_files import statement
from shared.telemetry import metrics

LEAD = statement("trigger", "lead")
RESIGN = statement("trigger", "resign")
_log = logger(__name__)


@dataclass(slots=True)
class Leadership:
    """The jobs that this process leads, each with the epoch of its lead; `lease` is how long one lasts unrenewed.

    `unproven` were led in a pass that has not ended well yet. Their lead lasts until it runs out, and is sought anew
    only when a pass without them has ended, so that any other trigger comes first.
    """

    holder: str
    lease: timedelta
    led: dict[str, int] = field(default_factory=dict)
    unproven: set[str] = field(default_factory=set)

    async def lead(self, session: Session, jobs: Collection[str], *, now: datetime | None = None) -> frozenset[str]:
        """Begin a pass: take or renew what is to be had, and give the jobs that this process leads in it."""
        if not jobs and not self.led:
            return frozenset()
        await self.resign(session, sorted(self.led.keys() - set(jobs)), now=now)
        proven, unproven = sorted(set(jobs) - self.unproven), sorted(set(jobs) & self.unproven)
        rows = await session.fetch(LEAD, proven, unproven, self.holder, self.lease, now)
        led = {row["job"]: row["epoch"] for row in rows}
        for job in sorted(led.keys() - self.led.keys()):
            _log.info("leader", job=job, epoch=led[job])
            metrics.leadership_taken.add(1, job=job)
        for job in sorted(self.led.keys() - led.keys()):
            _log.warning("leadership lost", job=job, epoch=self.led[job])
            metrics.leadership_lost.add(1, job=job)
        self.led = led
        self.unproven |= led.keys()
        return frozenset(led)

    def passed(self, troubled: Collection[str] = ()) -> None:
        """End a pass that ended well for all jobs but the `troubled`."""
        self.unproven &= set(troubled)

    async def resign(
        self, session: Session, jobs: Collection[str] | None = None, *, now: datetime | None = None
    ) -> None:
        """Give jobs back, by default all, so that another trigger leads them at its next pass."""
        given_up = sorted(self.led if jobs is None else jobs)
        if not given_up:
            return
        for row in await session.fetch(RESIGN, given_up, self.holder, now):
            _log.info("leadership given back", job=row["job"], epoch=self.led[row["job"]])
        self.led = {job: epoch for job, epoch in self.led.items() if job not in given_up}
        self.unproven -= set(given_up)
