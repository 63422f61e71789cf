"""Numbers that are read from the database and told as they are, for alert rules: by one process of the fleet at a time.

What was read is told for a while and then no more, so that a process that is frozen or cut off tells nothing stale. The
labels are jobs and kinds of alert.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, NoOpMeter, Observation

from shared import clock

# The label that a job goes by. Prometheus keeps the plain word `job` for what it scrapes.
JOB_LABEL: Final = "matins.job"


class Gauge:
    """A number with at most one label; tells nothing before `tell`, and nothing any more once that is over."""

    def __init__(self, name: str, unit: str, description: str, label: str = "") -> None:
        self.name = name
        self.unit = unit
        self._description = description
        self.label = label
        self._told: tuple[float, Mapping[str, float]] = (0.0, {})
        self.bind(NoOpMeter("matins"))

    def bind(self, meter: Meter) -> None:
        """Tell it to `meter` from now on."""
        meter.create_observable_gauge(self.name, [self._observe], self.unit, self._description)

    def tell(self, values: Mapping[str, float], *, seconds: float) -> None:
        """Tell a value for each value of the label, or one under '', for so many seconds. Empty: nothing at once."""
        # Read in the exporter's thread: both change together.
        self._told = (clock.monotonic() + seconds, dict(values))

    def _observe(self, _options: CallbackOptions) -> Iterable[Observation]:
        until, values = self._told
        if clock.monotonic() > until:
            return []
        return [Observation(value, {self.label: label} if self.label else {}) for label, value in values.items()]


class Gauges:
    """Every gauge of a process."""

    def __init__(self) -> None:
        self.last_success = Gauge(
            "matins.job.last_success.timestamp", "s", "When the last occurrence that succeeded was closed", JOB_LABEL
        )
        self.next_due = Gauge(
            "matins.job.next_due.timestamp", "s", "When the next occurrence to be claimed is, or was, due", JOB_LABEL
        )
        self.open_alerts = Gauge("matins.alerts.open", "{alert}", "Open alerts, by kind", "kind")
        self.oldest_unstarted = Gauge(
            "matins.oldest_unstarted.age", "s", "Since when the oldest occurrence that is due waits for its claim"
        )
        self.observed = Gauge("matins.observed.timestamp", "s", "When these were read from the database")
