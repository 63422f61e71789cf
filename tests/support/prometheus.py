"""What Matins sends, as Prometheus has it once the collector's exporter has spelled it."""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Histogram, InMemoryMetricReader, Metric, Sum

from shared.telemetry_gauges import Gauge
from shared.telemetry_metrics import Metrics

UNITS: Final = {"s": "seconds"}


@dataclass(frozen=True, slots=True)
class Sent:
    """A metric under the name that Prometheus has for it, without what a histogram's series add, and its labels."""

    name: str
    kind: str
    labels: frozenset[str]

    @property
    def series(self) -> dict[str, frozenset[str]]:
        """The names of its series, each with its labels."""
        if self.kind != "histogram":
            return {self.name: self.labels}
        counted = {f"{self.name}_{end}": self.labels for end in ("sum", "count")}
        return counted | {f"{self.name}_bucket": self.labels | {"le"}}


def sent() -> list[Sent]:
    """Give every metric that a process may send, with the labels that it then has."""
    reader = InMemoryMetricReader()
    every = Metrics()
    every.bind(MeterProvider([reader], shutdown_on_exit=False).get_meter("matins"))
    for instrument in every.instruments():
        if isinstance(instrument, Gauge):
            instrument.tell({("x",) * len(instrument.labels): 1.0}, seconds=60)
            continue
        count = getattr(instrument, "add", None) or getattr(instrument, "record")  # noqa: B009 - which of both it has
        named = [one.name for one in inspect.signature(count).parameters.values() if one.kind is one.KEYWORD_ONLY]
        count(1, **dict.fromkeys(named, "x"))
    read = reader.get_metrics_data()
    assert read is not None
    (resource,) = read.resource_metrics
    (scope,) = resource.scope_metrics
    return sorted(map(_spelled, scope.metrics), key=lambda one: one.name)


def _spelled(metric: Metric) -> Sent:
    """Spell a metric as the collector does: letters, the unit in words unless it is in braces, a counter's `_total`."""
    (point,) = metric.data.data_points
    unit = UNITS.get(metric.unit or "", "")
    counts = isinstance(metric.data, Sum)
    parts = [spelled(metric.name), *([unit] if unit else []), *(["total"] if counts else [])]
    kind = "counter" if counts else "histogram" if isinstance(metric.data, Histogram) else "gauge"
    labels: Mapping[str, object] = point.attributes or {}
    return Sent("_".join(parts), kind, frozenset(spelled(label) for label in labels))


def spelled(name: str) -> str:
    """Spell a name or a label."""
    return re.sub(r"\W", "_", name)


def exposed(values: Mapping[str, str], at: float) -> str:
    """Give a scrape of all that is sent, with these values of labels; times are `at`, in seconds, and all else is 1."""
    return "".join(f"{line}\n" for metric in sent() for line in _lines(metric, values, at))


def _lines(metric: Sent, values: Mapping[str, str], at: float) -> Iterator[str]:
    yield f"# TYPE {metric.name} {metric.kind}"
    for name, labels in metric.series.items():
        given = {"job": "matins/matins-trigger", "instance": "one"} | {one: values.get(one, "x") for one in labels}
        value = at if "timestamp" in name else 1
        for bound in ("1", "+Inf") if "le" in labels else ("",):
            told = given | ({"le": bound} if bound else {})
            pairs = ",".join(f'{label}="{told[label]}"' for label in sorted(told))
            yield f"{name}{{{pairs}}} {value}"
