"""A worker of the model that runs a job for itself: the product's own pass, without the broker."""

from dataclasses import dataclass, field
from functools import partial

import anyio

from shared.fleet import Instance, register_instance
from shared.job import Job
from shared.logs import FailureLog, logger
from shared.restore import Witness
from tests.model.database import ModelDatabase
from tests.model.process import Process
from worker.closing import Closing
from worker.every import Own
from worker.evidence import mark_of
from worker.invoke import Invocation
from worker.tell import Teller
from worker.transaction import Runner

_log = logger(__name__)


@dataclass(eq=False, slots=True)
class OwnWorkerProcess(Process):
    """A worker whose only job is its own."""

    job: Job = field(kw_only=True)

    async def live(self, database: ModelDatabase) -> None:
        """Run what is due, close it, and beat."""
        closing = Closing(database, self.name)
        instance = Instance(self.name, "worker", "model", "0", "", "model")
        async with database.session() as session:
            started_at = await register_instance(session, instance, {self.job.name: None})
        function, witness = self.job.handler.handler, Witness(self.name, started_at)
        assert not isinstance(function, str)
        invocation = Invocation(function, self.job.handler.timeout, anyio.CapacityLimiter(1))
        runner = Runner(self.job, invocation, self.name, chance=self.world.random.random)
        teller = Teller(self.job.name, FailureLog(_log))
        own = Own(self.job, mark_of(function), runner, instance, database, closing, teller, started_at)

        async def beat() -> None:
            async with database.session() as session:
                await witness.beat(session)

        def is_touched() -> bool:
            return bool(closing._touched)  # noqa: SLF001 - a pass without any would look at nothing

        async with anyio.create_task_group() as group:
            group.start_soon(self.loop("own pass", partial(own.own_pass)))
            group.start_soon(self.loop("close pass", closing.close_pass, is_touched))
            group.start_soon(self.loop("beat", beat))
