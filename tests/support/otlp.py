"""A collector for tests: it takes OTLP over HTTP, decodes it, keeps it, and answers as it is told.

with Collector() as collector:
    telemetry.configure(..., otel=collector.variables)
    ...
    telemetry.flush()
    [claim] = collector.spans_named("claim")
"""

import gzip
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

_KINDS = {0: "unspecified", 1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}
_ERROR = 2


@dataclass(frozen=True)
class ReceivedSpan:
    """One span as it arrived; ids are hexadecimal, `links` are (trace id, span id), times are nanoseconds."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    links: tuple[tuple[str, str], ...]
    attributes: dict[str, object]
    resource: dict[str, object]
    failed: bool
    description: str
    began: int
    ended: int

    @property
    def context(self) -> str:
        """The `traceparent` that names this span."""
        return f"00-{self.trace_id}-{self.span_id}-01"


@dataclass(frozen=True)
class ReceivedPoint:
    """One data point: `value` is a counter's or gauge's number, or a histogram's sum; `count` is a histogram's."""

    name: str
    unit: str
    attributes: dict[str, object]
    value: float
    count: int


@dataclass
class Collector:
    """Listens on a free port of this machine while its block lasts. `status` is what it answers with."""

    status: int = 200
    spans: list[ReceivedSpan] = field(default_factory=list)
    points: list[ReceivedPoint] = field(default_factory=list)
    requests: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _let_go: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._let_go.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._let_go.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def variables(self) -> dict[str, str]:
        """The `OTEL_` variables that name it."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint}

    def hold(self) -> None:
        """Answer nothing until the block ends: a collector that hangs."""
        self._let_go.clear()

    def spans_named(self, name: str) -> list[ReceivedSpan]:
        """Return the spans of that name, in the order in which they arrived."""
        with self._changed:
            return [span for span in self.spans if span.name == name]

    def span_of(self, context: str) -> ReceivedSpan | None:
        """Return the span that a `traceparent` names, if it arrived."""
        _, trace_id, span_id, _ = context.split("-")
        return self._find(trace_id, span_id)

    def parent_of(self, span: ReceivedSpan) -> ReceivedSpan | None:
        """Return the span's parent, if it has one and it arrived."""
        return self._find(span.trace_id, span.parent_id)

    def ancestors_of(self, span: ReceivedSpan) -> Iterator[ReceivedSpan]:
        """Walk from the span's parent to the root of its trace."""
        while parent := self.parent_of(span):
            yield parent
            span = parent

    def children_of(self, span: ReceivedSpan) -> list[ReceivedSpan]:
        """Return the spans whose parent this one is."""
        with self._changed:
            return [each for each in self.spans if (each.trace_id, each.parent_id) == (span.trace_id, span.span_id)]

    def linked_from(self, span: ReceivedSpan) -> list[ReceivedSpan]:
        """Return the spans that this one links to, as far as they arrived."""
        return [found for link in span.links if (found := self._find(*link))]

    def points_named(self, name: str) -> list[ReceivedPoint]:
        """Return the data points of one instrument, in the order in which they arrived."""
        with self._changed:
            return [point for point in self.points if point.name == name]

    def wait_for(self, arrived: Callable[[Self], bool], seconds: float = 20.0) -> None:
        """Wait until `arrived(self)` is true; raise TimeoutError after `seconds`."""
        with self._changed:
            if not self._changed.wait_for(lambda: arrived(self), seconds):
                names = sorted({span.name for span in self.spans})
                raise TimeoutError(f"what was waited for did not arrive; spans: {names}")

    def take(self, path: str, body: bytes) -> int:
        """Keep what one request brings, unless told to refuse it; return the answer's status."""
        with self._changed:
            self.requests += 1
            self._changed.notify_all()
        self._let_go.wait()
        with self._changed:
            if self.status == 200 and path == "/v1/traces":
                self.spans.extend(_spans_in(body))
            elif self.status == 200 and path == "/v1/metrics":
                self.points.extend(_points_in(body))
            self._changed.notify_all()
            return self.status

    def _find(self, trace_id: str, span_id: str) -> ReceivedSpan | None:
        with self._changed:
            return next((span for span in self.spans if (span.trace_id, span.span_id) == (trace_id, span_id)), None)


def _handler_for(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            self.send_response(collector.take(self.path, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002, ARG002 - as the base class has it
            return

    return Handler


def _spans_in(body: bytes) -> Iterator[ReceivedSpan]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        described = _attributes(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield _received(span, described)


def _received(span: WireSpan, resource: dict[str, object]) -> ReceivedSpan:
    return ReceivedSpan(
        name=span.name,
        kind=_KINDS[span.kind],
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        attributes=_attributes(span.attributes),
        resource=resource,
        failed=span.status.code == _ERROR,
        description=span.status.message,
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
    )


def _points_in(body: bytes) -> Iterator[ReceivedPoint]:
    for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                yield from _points_of(metric)


def _points_of(metric: Metric) -> Iterator[ReceivedPoint]:
    for number in (*metric.sum.data_points, *metric.gauge.data_points):
        value = number.as_double or float(number.as_int)
        yield ReceivedPoint(metric.name, metric.unit, _attributes(number.attributes), value, 0)
    for spread in metric.histogram.data_points:
        yield ReceivedPoint(metric.name, metric.unit, _attributes(spread.attributes), spread.sum, spread.count)


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, object]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    return getattr(value, kind) if kind else None
