"""What Matins tells about itself to a collector: the way in for everything else; see the modules that it names.

Spans and metrics leave over OTLP/HTTP if the standard `OTEL_` variables name a collector; otherwise nothing is sent and
nothing is said about it. How the collector fares never touches the work.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opentelemetry import metrics as metrics_api
from opentelemetry import trace
from opentelemetry.metrics import NoOpMeter

from shared.logs import identify_traces, logger
from shared.telemetry_metrics import Metrics, metrics
from shared.telemetry_span import Facts, Span, current, tracing
from shared.telemetry_steps import (
    Destination,
    claim_span,
    close_span,
    dead_letter_span,
    execute_span,
    failed_account,
    fan_out_span,
    own_span,
    publish_span,
    retry_span,
    settle_span,
    takeover_span,
)

if TYPE_CHECKING:
    from shared.telemetry_export import Providers

__all__ = [
    "Destination",
    "Facts",
    "Metrics",
    "Span",
    "claim_span",
    "close_span",
    "configure",
    "current",
    "dead_letter_span",
    "execute_span",
    "failed_account",
    "fan_out_span",
    "flush",
    "measures",
    "metrics",
    "own_span",
    "publish_span",
    "retry_span",
    "settle_span",
    "shutdown",
    "takeover_span",
]

SHUTDOWN_SECONDS = 3.0
_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PROTOCOLS = {"", "http/protobuf"}
_QUEUE_SIZE = "OTEL_BSP_MAX_QUEUE_SIZE"
_SPANS_IN_QUEUE = 16_384
_log = logger(__name__)


@dataclass
class _Process:
    """What this process exports to, if anything, and whether the API's global providers have been set."""

    providers: "Providers | None" = None
    is_global: bool = False


_process = _Process()


def configure(
    service: str,
    *,
    instance: str,
    version: str,
    environment: str,
    success_sampling: float,
    otel: Mapping[str, str],
) -> None:
    """Start to export, if `otel`, the `OTEL_` variables, names a collector; replaces what an earlier call began.

    `service` is `matins-trigger` or `matins-worker`. `success_sampling` is the share (0 to 1) of executions without
    failure that is exported. A variable that the SDK can't use leaves telemetry off, with a
    warning.
    """
    shutdown()
    traces, measurements = _endpoint(otel, "TRACES"), _endpoint(otel, "METRICS")
    if not traces and not measurements:
        return
    attributes = {
        "service.name": service,
        "service.namespace": "matins",
        "service.version": version,
        "service.instance.id": instance,
        "deployment.environment.name": environment,
    }
    # The SDK's own bound is too low for a chunk in which every account fails.
    queue_size = None if _QUEUE_SIZE in otel else _SPANS_IN_QUEUE
    try:
        from shared.telemetry_export import connect  # noqa: PLC0415 - the SDK and its HTTP client, only where needed

        providers = connect(attributes, traces, measurements, success_sampling, queue_size)
    except Exception as error:  # noqa: BLE001 - a collector that is described wrongly must not stop the work
        _log.warning("telemetry is off: it can't be set up", error_class=type(error).__name__, reason=str(error))
        return
    _begin(providers, version)


def measures() -> bool:
    """Tell whether anybody takes what is measured."""
    return tracing.measured


def flush(seconds: float = SHUTDOWN_SECONDS) -> bool:
    """Send what is queued, waiting at most `seconds`; return whether that was enough. Blocks."""
    return _process.providers.flush(seconds) if _process.providers else True


def shutdown(seconds: float = SHUTDOWN_SECONDS) -> bool:
    """Send what is queued and stop, waiting at most `seconds`; return whether that was enough. Blocks."""
    providers, _process.providers = _process.providers, None
    tracing.tracer, tracing.measured = None, False
    metrics.bind(NoOpMeter("matins"))
    return providers.shutdown(seconds) if providers else True


def _begin(providers: "Providers", version: str) -> None:
    _process.providers = providers
    identify_traces(current)
    if providers.tracers:
        tracing.tracer = providers.tracers.get_tracer("matins", version)
    if providers.meters:
        tracing.measured = True
        metrics.bind(providers.meters.get_meter("matins", version))
    if not _process.is_global:
        # What a job's own code records goes the same way; the API takes one provider in the life of a process.
        _process.is_global = True
        trace.set_tracer_provider(providers.tracers or trace.NoOpTracerProvider())
        metrics_api.set_meter_provider(providers.meters or metrics_api.NoOpMeterProvider())


def _endpoint(otel: Mapping[str, str], signal: str) -> str | None:
    """Where `signal` (`TRACES`, `METRICS`) goes, or None if it isn't exported."""
    if otel.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if otel.get(f"OTEL_{signal}_EXPORTER", "otlp").strip().lower() == "none":
        return None
    general = otel.get(_ENDPOINT, "").strip()
    endpoint = otel.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", "").strip()
    if not endpoint and not general:
        return None
    protocol = otel.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL") or otel.get("OTEL_EXPORTER_OTLP_PROTOCOL", "")
    if protocol not in _PROTOCOLS:
        _log.warning("telemetry is off: only http/protobuf is spoken", signal=signal.lower(), protocol=protocol)
        return None
    return endpoint or f"{general.rstrip('/')}/v1/{signal.lower()}"
