"""Sending spans and metrics to a collector over OTLP/HTTP, without the work noticing how the collector fares.

Queues are bounded, what does not fit is dropped, and every call that waits does so in a thread that dies with the
process. A collector that is down, slow or refusing is worth one warning, and one line when it is back, not a line for
each batch. Imported only where a collector is named: the SDK and its HTTP client cost memory and start-up time.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

from shared import clock
from shared.logs import logger
from shared.telemetry_sampling import SuccessSampling

_WARN_AGAIN_AFTER = 600.0
_SDK_LOGGERS = ("opentelemetry.sdk", "opentelemetry.exporter")
_log = logger(__name__)


class Collector:
    """Whether the collector takes what it is sent; says so once when that changes."""

    def __init__(self, monotonic: Callable[[], float] = clock.monotonic) -> None:
        self._monotonic = monotonic
        self._refused: set[str] = set()
        self._warned_at: float | None = None
        self._announced = False
        self._lock = threading.Lock()

    def note(self, signal: str, *, taken: bool) -> None:
        """Note how one batch of `signal` (`traces` or `metrics`) fared."""
        with self._lock:
            if taken:
                self._refused.discard(signal)
            else:
                self._refused.add(signal)
            event = self._news()
        if event == "lost":
            _log.warning("telemetry is not taken by its collector; some is lost, the work goes on", signal=signal)
        elif event == "back":
            _log.info("telemetry is taken by its collector again")

    def _news(self) -> str:
        now = self._monotonic()
        if self._refused and not self._announced:
            if self._warned_at is not None and now - self._warned_at < _WARN_AGAIN_AFTER:
                return ""
            self._announced, self._warned_at = True, now
            return "lost"
        if not self._refused and self._announced:
            self._announced = False
            return "back"
        return ""


class _Spans(OTLPSpanExporter):
    """The SDK's exporter, noting how each batch fared."""

    def __init__(self, endpoint: str, collector: Collector) -> None:
        super().__init__(endpoint=endpoint)
        self._collector = collector

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        self._collector.note("traces", taken=result is SpanExportResult.SUCCESS)
        return result


class _Measurements(OTLPMetricExporter):
    """The SDK's exporter, noting how each batch fared."""

    def __init__(self, endpoint: str, collector: Collector) -> None:
        super().__init__(endpoint=endpoint)
        self._collector = collector

    def export(
        self, metrics_data: MetricsData, timeout_millis: float | None = 10_000, **kwargs: object
    ) -> MetricExportResult:
        result = super().export(metrics_data, timeout_millis, **kwargs)
        self._collector.note("metrics", taken=result is MetricExportResult.SUCCESS)
        return result


@dataclass(frozen=True)
class Providers:
    """What makes tracers and meters; either is None if its signal isn't exported."""

    tracers: TracerProvider | None
    meters: MeterProvider | None

    def flush(self, seconds: float) -> bool:
        """Send what is queued, waiting at most `seconds`; return whether all was handed over by then."""
        return _all_within(seconds, [provider.force_flush for provider in (self.tracers, self.meters) if provider])

    def shutdown(self, seconds: float) -> bool:
        """Send what is queued and stop, waiting at most `seconds`; return whether that was enough."""
        return _all_within(seconds, [provider.shutdown for provider in (self.tracers, self.meters) if provider])


def connect(
    attributes: dict[str, str], traces: str | None, measurements: str | None, share: float, queue_size: int | None
) -> Providers:
    """Make the providers for the endpoints given; `attributes` describe this process, `OTEL_RESOURCE_ATTRIBUTES` wins.

    At most `queue_size` spans wait to be sent; None leaves the number to the SDK.

    Raises whatever the SDK raises for an `OTEL_` variable that it can't use.
    """
    resource = Resource.create(dict(attributes)).merge(OTELResourceDetector().detect())
    collector = Collector()
    # Both first: what raises must not leave the threads of the other behind.
    spans = _Spans(traces, collector) if traces else None
    counts = _Measurements(measurements, collector) if measurements else None
    tracers = meters = None
    if spans:
        tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        tracers.add_span_processor(SuccessSampling(BatchSpanProcessor(spans, queue_size), share))
    if counts:
        meters = MeterProvider([PeriodicExportingMetricReader(counts)], resource, shutdown_on_exit=False)
    # From here on the SDK would write a line for each batch that is not taken; the collector's state says it once.
    for name in _SDK_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return Providers(tracers, meters)


def _all_within(seconds: float, calls: Sequence[Callable[[], object]]) -> bool:
    """Run the calls side by side; those that take longer go on in threads that die with the process."""
    ends_at = clock.monotonic() + seconds
    threads = [threading.Thread(target=_try, args=(call,), name="telemetry", daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, ends_at - clock.monotonic()))
    return not any(thread.is_alive() for thread in threads)


def _try(call: Callable[[], object]) -> None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever the SDK raises at its end, the process ends as it would have
        _log.warning("telemetry did not end well", error_class=type(error).__name__)
