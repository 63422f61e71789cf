"""Which executions are exported: every failure, and a share of the successes, each with all of its spans.

A night has a million executions; nobody looks at those that went well. Whether one went well is known only at its end,
so the spans of an execution (its own, the settle's, those that the job's code makes) wait until it ends and then go out
together or not at all. All other traces (claim, fan-out, publish, close) pass through at once. Memory is bounded: what
does not fit is dropped, never the span that decides.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import StatusCode

from shared.telemetry_span import OUTCOME, STEP

UNREMARKABLE = frozenset({"succeeded", "nothing_to_do", "settled", "busy", "early"})

_LOW_BITS = (1 << 64) - 1
_SPANS_OF_ONE = 1024
_SPANS_AT_ONCE = 32_768
_TRACES_REMEMBERED = 4096


@dataclass
class _Waiting:
    """The spans of one execution that have ended before it."""

    spans: list[ReadableSpan] = field(default_factory=list)
    failed: bool = False


class SuccessSampling(SpanProcessor):
    """Passes spans on to `exported`: all but those of executions that went well and whose trace isn't in the share."""

    def __init__(self, exported: SpanProcessor, share: float) -> None:
        self._exported = exported
        self._below = round(share * (_LOW_BITS + 1))
        self._waiting: dict[int, _Waiting] = {}
        self._spans_waiting = 0
        self._left_out: OrderedDict[int, None] = OrderedDict()
        self._lock = threading.Lock()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Begin to hold back the spans of an execution."""
        self._exported.on_start(span, parent_context)
        if span.parent is None and (span.attributes or {}).get(STEP) == "execute":
            with self._lock:
                self._waiting[span.get_span_context().trace_id] = _Waiting()

    def on_end(self, span: ReadableSpan) -> None:
        """Hold a span back, pass it on, or drop it."""
        for passed in self._decide(span):
            self._exported.on_end(passed)

    def shutdown(self) -> None:
        """Export what was passed on; executions that haven't ended are dropped."""
        self._exported.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Export what was passed on."""
        return self._exported.force_flush(timeout_millis)

    def _decide(self, span: ReadableSpan) -> list[ReadableSpan]:
        context = span.get_span_context()
        if context is None:
            return []
        with self._lock:
            waiting = self._waiting.get(context.trace_id)
            if waiting is None:
                return [] if context.trace_id in self._left_out else [span]
            waiting.failed |= span.status.status_code is StatusCode.ERROR
            if span.parent is not None:
                self._hold(waiting, span)
                return []
            del self._waiting[context.trace_id]
            self._spans_waiting -= len(waiting.spans)
            if waiting.failed or self._remarkable(span) or context.trace_id & _LOW_BITS < self._below:
                return [*waiting.spans, span]
            self._leave_out(context.trace_id)
            return []

    def _hold(self, waiting: _Waiting, span: ReadableSpan) -> None:
        if len(waiting.spans) < _SPANS_OF_ONE and self._spans_waiting < _SPANS_AT_ONCE:
            waiting.spans.append(span)
            self._spans_waiting += 1

    def _leave_out(self, trace_id: int) -> None:
        """Remember the decision for spans that end after their execution."""
        self._left_out[trace_id] = None
        if len(self._left_out) > _TRACES_REMEMBERED:
            self._left_out.popitem(last=False)

    @staticmethod
    def _remarkable(span: ReadableSpan) -> bool:
        return (span.attributes or {}).get(OUTCOME) not in UNREMARKABLE
