"""Jobs whose code this worker lacks: their messages wait, charged to nobody, for a worker that has it.

Jobs may share a queue, so a worker is given messages of all of them. What it cannot run it publishes again, to a delay.
While another live worker has the code the first delay is short, and longer each time the message comes back here, so
that a backlog of it does not go round and round. While nobody has it, only the delay's end is waited for.
"""

from dataclasses import dataclass, field
from datetime import timedelta

from shared import clock
from shared.fleet import runnable_jobs
from shared.logs import logger
from shared.postgres import Session

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0
# Longer than a message that nobody can run is in its delay.
REMEMBERED = timedelta(minutes=2)
# A name comes from a message, and so from whoever may publish.
NAMES_AT_MOST = 100
_log = logger(__name__)


@dataclass(slots=True)
class Elsewhere:
    """What this worker knows of the jobs that it cannot run.

    `problems` says of those that it declares why not. `runnable` are the jobs that other live workers can run, as of
    the last look; `met` are those of which messages came, with the time of the last one.
    """

    instance: str
    problems: dict[str, str] = field(default_factory=dict)
    runnable: frozenset[str] = frozenset()
    met: dict[str, float] = field(default_factory=dict)

    async def look(self, session: Session) -> None:
        """Look what the other live workers can run."""
        self.runnable = await runnable_jobs(session, but=self.instance)

    def wait(self, job: str, queue: str, times: int) -> float:
        """Give the seconds for which a message waits that was handed on `times` before; the first of a job is told."""
        if job not in self.met and len(self.met) < NAMES_AT_MOST:
            has_it = "other live workers" if job in self.runnable else "no live worker"
            reason = self.problems.get(job, "not declared by this worker")
            _log.warning("no code for a job", job=job, queue=queue, reason=reason, code=has_it)
        if job in self.met or len(self.met) < NAMES_AT_MOST:
            self.met[job] = clock.monotonic()
        if job not in self.runnable:
            return LONGEST_SECONDS
        # Beyond this exponent the bound has been reached long ago.
        return min(FIRST_SECONDS * float(2 ** min(times, 10)), LONGEST_SECONDS)

    def problem(self) -> str | None:
        """Say of which jobs messages wait here that no live worker can run; called in the endpoint's thread."""
        since = clock.monotonic() - REMEMBERED.total_seconds()
        stuck = sorted(job for job, met in list(self.met.items()) if met > since and job not in self.runnable)
        return f"messages wait, and no live worker has the code of: {', '.join(stuck)}" if stuck else None
