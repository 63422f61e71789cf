"""The jobs that this worker runs for itself, each in a loop of its own beside the messages."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

import anyio
from anyio.abc import TaskGroup

from shared.fleet import register_instance
from shared.health import Health
from shared.job import EveryWorker, Job
from shared.lifecycle import every, start_part
from shared.logs import FailureLog
from shared.postgres import Database, Session, is_transient
from shared.start import Prepared
from shared.stopping import Stopping
from worker.closing import Closing
from worker.every import Own
from worker.evidence import mark_of
from worker.invoke import Invocation
from worker.left_behind import LeftBehind
from worker.resolve import Resolved
from worker.tell import Teller
from worker.transaction import Runner

_WEDGED_MARGIN = timedelta(minutes=1)


def served_by_messages(jobs: Mapping[str, Job]) -> dict[str, Job]:
    """Give the jobs whose accounts come as messages: all but those that every worker runs for itself."""
    return {name: job for name, job in jobs.items() if not isinstance(job.handler, EveryWorker)}


class OwnJobs:
    """The jobs with an `EveryWorker`, and what hinders them."""

    def __init__(
        self,
        prepared: Prepared,
        resolved: Resolved,
        database: Database,
        closing: Closing,
        failures: FailureLog,
        left_behind: LeftBehind,
    ) -> None:
        """Compose a runner for each."""
        self._prepared = prepared
        self._record = resolved.as_record()
        self._told: Mapping[str, str | None] = self._record
        settings, instance = prepared.settings, prepared.instance
        self._own: dict[str, Own] = {}
        for name, function in resolved.functions.items():
            job = prepared.loaded.jobs[name]
            if isinstance(job.handler, EveryWorker):
                invocation = Invocation(function, job.handler.timeout, anyio.CapacityLimiter(1), name, left_behind)
                runner = Runner(job, invocation, instance.id, names=settings.database_roles)
                teller = Teller(name, failures)
                self._own[name] = Own(job, mark_of(function), runner, instance, database, closing, teller)

    def start(self, group: TaskGroup, stopping: Stopping, health: Health, started_at: datetime) -> None:
        """Run each when it is due; what was due before `started_at` is none of this worker's."""
        if self._own:
            health.part("own jobs", self.problem)
        for name, own in self._own.items():
            own.started_at = started_at
            start_part(group, stopping, f"own {name}", partial(self._loop, own, stopping, health))

    async def _loop(self, own: Own, stopping: Stopping, health: Health) -> None:
        await every(
            f"own {own.job.name}",
            self._prepared.settings.tick_interval,
            own.own_pass,
            stopping,
            health=health,
            transient=is_transient,
            wedged_after=own.job.handler.timeout + _WEDGED_MARGIN,
        )

    def problem(self) -> str | None:
        """Name the jobs that this worker does not run for itself, and why."""
        return "; ".join(f"{name}: {own.problem}" for name, own in self._own.items() if own.problem) or None

    async def tell(self, session: Session) -> None:
        """Publish what has changed of what this worker can run."""
        record = self._record | {name: own.problem for name, own in self._own.items()}
        if record != self._told:
            await register_instance(session, self._prepared.instance, record, self._prepared.topology.queue_names)
            self._told = record
