"""Looking into the work queues and the dead letters, for who asks whether all is well."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from shared.masking import mask
from shared.settings import Settings
from shared.terminal import given

# A command for people does not wait as long as a service does.
LONGEST_LOOK = timedelta(seconds=5)


class Looked(NamedTuple):
    """What was seen of queues, None for nothing; what is missing, and why nothing could be seen, a line each."""

    queues: list[dict[str, Any]] | None
    missing: list[str]
    unseen: list[str]


LookAtQueues = Callable[[Settings, Sequence[str]], Awaitable[Looked]]


async def ask_for_queues(settings: Settings, works: Sequence[str]) -> Looked:
    """Look into the work queues and the dead letters; then say what is missing, and why nothing could be seen."""
    from shared.broker import BrokerUnavailable  # noqa: PLC0415 - a command loads only what it uses
    from shared.broker_inspection import inspect_broker  # noqa: PLC0415 - a command loads only what it uses

    url = given(settings, "broker_url")
    if not url:
        return Looked(None, [], ["the queues were not seen: MATINS_BROKER_URL is not set"])
    names = [*works, f"{settings.prefix}.dead.parked", f"{settings.prefix}.dead.accounted"]
    seconds = min(settings.broker_timeout, LONGEST_LOOK).total_seconds()
    try:
        facts = await inspect_broker(url, names, timeout=seconds)
    except BrokerUnavailable as error:
        return Looked(None, [], [mask(f"the queues were not seen: {error}")])
    found = [
        {"queue": name, "messages": depth.messages, "consumers": depth.consumers}
        for name, depth in facts.queues.items()
        if depth is not None
    ]
    missing = [name for name, depth in facts.queues.items() if depth is None]
    told = [f"missing on the broker, run migrate: {', '.join(missing)}"] if missing else []
    return Looked(found, told, [])
