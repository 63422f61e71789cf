"""Noticing that the database's clock was set: what is due follows it, so whoever reads the log should know."""

from dataclasses import dataclass
from datetime import datetime

from shared import clock
from shared.logs import logger
from shared.postgres import Session, database_now

# Longer than clocks drift between two looks; an answer that was slow is allowed for besides.
STEP_SECONDS = 5.0
_log = logger(__name__)


@dataclass(slots=True)
class ClockSteps:
    """What was seen last: the database's clock, and this process's own that nobody sets."""

    seen: datetime | None = None
    seen_at: float = 0.0

    async def look(self, session: Session) -> None:
        """Look once, and warn of a step since the last look."""
        asked_at = clock.monotonic()
        now = await database_now(session)
        self.note(now, asked_at, clock.monotonic())

    def note(self, now: datetime, asked_at: float, answered_at: float) -> None:
        """Compare an answer of the database's clock, asked for and got at two times of our own, with the last one."""
        if self.seen is not None:
            passed = (now - self.seen).total_seconds()
            seconds = passed - (answered_at - self.seen_at)
            if abs(seconds) > STEP_SECONDS + (answered_at - asked_at):
                _log.warning("the database's clock was set", seconds=round(seconds, 1), now=now)
        self.seen, self.seen_at = now, answered_at
