"""What the broker's queues hold, looked at behind the pages: a broker that is away makes no page wait."""

from collections.abc import Sequence
from typing import Final

from shared.settings import Settings
from trigger.console.keeping import Unseen
from trigger.console.place import Place
from trigger.queue_look import LookAtQueues, Looked, ask_for_queues

LOOK_SECONDS: Final = 5.0


def queues_kept(place: Place) -> LookAtQueues:
    """Give a way to look at queues that gives what was last seen of them, and says so when that is old."""

    async def look(settings: Settings, names: Sequence[str]) -> Looked:
        async def read() -> Looked:
            looked = await ask_for_queues(settings, names)
            if looked.queues is None:
                raise ConnectionError(looked.unseen[0])
            return looked

        try:
            kept = await place.keeping.get(
                f"queues {','.join(names)}", read, fresh_for=LOOK_SECONDS, stale_for=float("inf")
            )
        except Unseen as error:
            return Looked(None, [], [str(error)])
        looked: Looked = kept.value
        return looked._replace(unseen=[kept.problem] if kept.problem else [])

    return look
