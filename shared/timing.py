"""When a job's occurrences are due: its schedule, and the jitter that spreads jobs of one instant. Pure.

Planner, preview and checks ask `occasions`, so that they cannot disagree. An occurrence is named by its scheduled
instant; the jitter makes it due some seconds later, as many on every machine and at every time, since they come from a
hash of that name. It is due before the schedule's next instant, so that due times never change places.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from schemas.occurrence import Identity
from shared.job import Job
from shared.schedule_definition import schedule_of
from shared.schedule_protocol import Schedule

_NONE = timedelta(0)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Occasion:
    """One scheduled instant: when it is due, since when it covers the time, and what leaves it out, or ''."""

    scheduled_at: datetime
    due_at: datetime
    since: datetime
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Timing:
    """When one job is due; `jitter` is the most by which an occurrence is put off."""

    job: str
    schedule: Schedule
    jitter: timedelta = _NONE

    @classmethod
    def of(cls, job: Job) -> "Timing":
        """Give the timing that a job declares."""
        return cls(job.name, job.schedule, job.jitter)

    @classmethod
    def from_definition(cls, job: str, definition: Mapping[str, Any]) -> "Timing":
        """Give the timing that a recorded definition describes.

        Raises:
            DeclarationError: the definition is not usable.
        """
        schedule = schedule_of(definition["schedule"])
        return cls(job, schedule, timedelta(seconds=definition.get("jitter", 0)))

    def occasions(self, after: datetime, until: datetime) -> Iterator[Occasion]:
        """Give every scheduled instant after `after`, up to and including `until`, in order; both are aware."""
        since: datetime | None = None
        for instant, left_out in self.schedule.named(after, until):
            since = since or self.schedule.previous_before(instant) or instant
            yield Occasion(instant, instant if left_out else self.due_at(instant), since, left_out)
            if not left_out:
                since = instant

    def due_at(self, instant: datetime) -> datetime:
        """Give when an instant's occurrence is due: at once, or up to `jitter` later, on a whole second."""
        seconds = int(self.jitter.total_seconds())
        if seconds == 0:
            return instant
        following = next(self.schedule.instants(instant, instant + self.jitter), None)
        if following is not None:
            seconds = int((following - instant - _SECOND).total_seconds())
        mark = hashlib.sha256(str(Identity(self.job, instant)).encode()).digest()
        return instant + timedelta(seconds=int.from_bytes(mark[:8]) % (seconds + 1))
