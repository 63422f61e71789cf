"""What a trigger sees around itself with every sign of life: what workers can run, which definitions differ."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from shared.broker import QueueDepth
from shared.fleet import read_topology, runnable_jobs
from shared.postgres import Session
from shared.topology import Topology
from trigger.clock_steps import ClockSteps
from trigger.definitions import DefinitionWatch


@dataclass(slots=True)
class Surroundings:
    """What was seen last: jobs that a live worker can run, and the keys of queues that are other versions of ours."""

    topology: Topology
    runnable: frozenset[str] = frozenset()
    other_versions: dict[str, str] = field(default_factory=dict)
    definitions: DefinitionWatch = field(default_factory=DefinitionWatch)
    clock_steps: ClockSteps = field(default_factory=ClockSteps)

    async def look(self, session: Session) -> None:
        """Look once, and tell what is new."""
        self.runnable = await runnable_jobs(session)
        self.other_versions = self.topology.other_versions(await read_topology(session))
        await self.definitions.look(session)
        await self.clock_steps.look(session)

    async def drained(self, job: str, queue: str | None, depth: Callable[[str], Awaitable[QueueDepth | None]]) -> bool:
        """Tell whether a job's messages can be lost: not while one waits in its queue's other versions.

        Nor while no live worker can run the job: workers that share its queue hand them on, so that they are in a delay
        whenever the queue is seen empty, and each resend would add a copy.
        """
        if job not in self.runnable:
            return False
        for name, key in self.other_versions.items():
            found = await depth(name) if key == queue else None
            if found is not None and found.messages:
                return False
        return True
