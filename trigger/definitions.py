"""Telling of live processes that hold different definitions of a job: in the log once, and as values."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from schemas.occurrence import format_instant
from shared.differences import Difference, read_differences
from shared.logs import logger
from shared.postgres import Session
from shared.telemetry import metrics

_log = logger(__name__)


@dataclass(slots=True)
class DefinitionWatch:
    """Tells a difference once when it begins, and once when it is over: what it has told, by job."""

    told: dict[str, frozenset[str]] = field(default_factory=dict)

    async def look(self, session: Session) -> None:
        """Look once."""
        self.note(await read_differences(session))

    def note(self, differences: Sequence[Difference]) -> None:
        """Tell what is new of it."""
        found = {one.job: frozenset(side.fingerprint for side in one.sides) for one in differences}
        for one in differences:
            # A side that goes or comes is told, one that only gains a process is not.
            if self.told.get(one.job) != found[one.job]:
                metrics.differing_definitions.add(1, job=one.job)
                since = format_instant(one.since)
                sides = [str(side) for side in one.sides]
                _log.warning("live processes hold different definitions", job=one.job, since=since, sides=sides)
        for job in self.told.keys() - found.keys():
            _log.info("live processes hold one definition again", job=job)
        self.told = found


def as_values(difference: Difference) -> dict[str, Any]:
    """Give it for JSON."""
    sides = [asdict(side) for side in difference.sides]
    return {"job": difference.job, "since": difference.since, "definitions": sides}
