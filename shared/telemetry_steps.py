"""The steps of an occurrence as spans, with the names and attributes of the messaging conventions.

Two kinds of trace: an occurrence's own (claim, fan-out, publish, takeover, close), held together by the context that is
stored as text on its row; and one for each execution, a root of its own that links to what published it, so that a
night of a million accounts is no trace of a million spans.

The functions return context managers. An exception that passes through marks the step as failed, a cancellation as
interrupted. `parent` is a context as text: None means the span that is current, an empty or unreadable text none.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Unpack

from opentelemetry.trace import SpanKind
from opentelemetry.util.types import AttributeValue

from shared.telemetry_metrics import metrics
from shared.telemetry_span import Facts, Span, Step


@dataclass(frozen=True, slots=True)
class Destination:
    """Where messages go to or come from; empty parts are left out, `queue` is for consumers."""

    exchange: str
    routing_key: str = ""
    queue: str = ""
    host: str = ""
    port: int = 0

    @property
    def name(self) -> str:
        """The `messaging.destination.name`: `exchange:routing key`, and the queue unless it is named as the key."""
        queue = "" if self.queue == self.routing_key else self.queue
        return ":".join(part for part in (self.exchange, self.routing_key, queue) if part)


def claim_span(
    job: str, occurrence: str, *, links: Iterable[str | None] = (), **facts: Unpack[Facts]
) -> AbstractContextManager[Span]:
    """The claim: the root of the occurrence's trace. Its context belongs on the row; `links` name who asked for it."""
    return Step("claim", "claim", facts, _of(job, occurrence), parent="", links=links)


def takeover_span(
    job: str, occurrence: str, *, parent: str | None, **facts: Unpack[Facts]
) -> AbstractContextManager[Span]:
    """A claim taken over after its lease ran out; `parent` is the context on the row."""
    return Step("takeover", "take over", facts, _of(job, occurrence), parent=parent)


def fan_out_span(
    job: str, occurrence: str, *, parent: str | None, **facts: Unpack[Facts]
) -> AbstractContextManager[Span]:
    """Writing the ledger rows; `parent` is the context on the occurrence's row."""
    return Step("fan_out", "fan out", facts, _of(job, occurrence), parent=parent)


def own_span(job: str, occurrence: str, *, parent: str | None, **facts: Unpack[Facts]) -> AbstractContextManager[Span]:
    """A worker's run of its own occurrence, without the broker; `parent` is the context on the occurrence's row."""
    return Step("own", "run", facts, _of(job, occurrence), parent=parent)


def close_span(
    job: str, occurrence: str, *, parent: str | None, **facts: Unpack[Facts]
) -> AbstractContextManager[Span]:
    """The end of an occurrence; `parent` is the context on its row."""
    return Step("close", "close", facts, _of(job, occurrence), parent=parent)


def publish_span(
    job: str,
    destination: Destination,
    *,
    messages: int,
    parent: str | None = None,
    links: Iterable[str | None] = (),
    occurrence: str = "",
    message_id: str = "",
    **facts: Unpack[Facts],
) -> AbstractContextManager[Span]:
    """One batch of `messages` with its confirms; its context goes into each of them. Measured as a client operation."""
    described = _of(job, occurrence) | _messaging("publish", destination, message_id, occurrence, messages)
    name = f"publish {destination.exchange or destination.name}"
    measure = partial(_measure_publish, destination.name, messages)
    return Step("publish", name, facts, described, SpanKind.PRODUCER, parent, links, measure)


def retry_span(
    job: str, destination: Destination, *, occurrence: str, message_id: str = "", **facts: Unpack[Facts]
) -> AbstractContextManager[Span]:
    """The message that asks for another try, sent to a delay exchange inside the execution that failed."""
    described = _of(job, occurrence) | _messaging("publish", destination, message_id, occurrence, 1)
    name = f"publish {destination.exchange or destination.name}"
    measure = partial(_measure_publish, destination.name, 1)
    return Step("retry", name, facts, described, SpanKind.PRODUCER, measure=measure)


def execute_span(
    job: str,
    destination: Destination,
    *,
    occurrence: str,
    message_id: str,
    links: Iterable[str | None],
    **facts: Unpack[Facts],
) -> AbstractContextManager[Span]:
    """One message's work: a trace of its own, with links to the message's context and to the row's previous one.

    It is exported if it failed, if its `outcome` isn't one that goes without saying, or if it is among the share of
    successes that is kept. Measured as processing.
    """
    described = _of(job, occurrence) | _messaging("process", destination, message_id, occurrence, 0)
    name = f"process {destination.queue or destination.name}"
    measure = partial(_measure_process, destination.name)
    return Step("execute", name, facts, described, SpanKind.CONSUMER, "", links, measure)


def settle_span(
    job: str, occurrence: str, *, parent: str | None = None, **facts: Unpack[Facts]
) -> AbstractContextManager[Span]:
    """The ledger's move; a child of the execution."""
    return Step("settle", "settle", facts, _of(job, occurrence), parent=parent)


def dead_letter_span(
    job: str,
    destination: Destination,
    *,
    occurrence: str,
    message_id: str,
    links: Iterable[str | None],
    **facts: Unpack[Facts],
) -> AbstractContextManager[Span]:
    """A message that the broker gave up, as the dead-letter reader accounts for it: a trace of its own, always kept."""
    described = _of(job, occurrence) | _messaging("process", destination, message_id, occurrence, 0)
    name = f"process {destination.queue or destination.name}"
    return Step("dead_letter", name, facts, described, SpanKind.CONSUMER, "", links)


def failed_account(job: str, occurrence: str, account: str, error_class: str, message: str) -> None:
    """Record one account that failed, as a child of the execution that is current."""
    with Step("account", "execute account", {"account": account}, _of(job, occurrence)) as span:
        span.fail(error_class, message)


def _of(job: str, occurrence: str) -> dict[str, AttributeValue]:
    described: dict[str, AttributeValue] = {"matins.job": job}
    return described | ({"matins.occurrence": occurrence} if occurrence else {})


def _messaging(
    operation: str, destination: Destination, message_id: str, occurrence: str, messages: int
) -> dict[str, AttributeValue]:
    described: dict[str, AttributeValue] = {
        "messaging.system": "rabbitmq",
        "messaging.operation.name": operation,
        "messaging.operation.type": "send" if operation == "publish" else "process",
        "messaging.destination.name": destination.name,
    }
    optional: dict[str, AttributeValue] = {
        "messaging.rabbitmq.destination.routing_key": destination.routing_key,
        "messaging.message.id": message_id,
        "messaging.message.conversation_id": occurrence,
        "messaging.batch.message_count": messages,
        "server.address": destination.host,
        "server.port": destination.port,
    }
    return described | {key: value for key, value in optional.items() if value}


def _measure_publish(destination: str, messages: int, seconds: float, error_class: str) -> None:
    labels = {"operation": "publish", "destination": destination, "error_class": error_class}
    metrics.client_operation_duration.record(seconds, **labels)
    metrics.sent_messages.add(messages, **labels)


def _measure_process(destination: str, seconds: float, error_class: str) -> None:
    labels = {"operation": "process", "destination": destination, "error_class": error_class}
    metrics.process_duration.record(seconds, **labels)
    metrics.consumed_messages.add(1, **labels)
