"""Numbers that are read from the database and told as they are, for rules and dashboards: by one process at a time.

What was read is told for a while and then no more, so that a process that is frozen or cut off tells nothing stale. The
labels are jobs, kinds of alert, outcomes, and what was deployed.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, NoOpMeter, Observation

from shared import clock

# The label that a job goes by. Prometheus keeps the plain word `job` for what it scrapes.
JOB_LABEL: Final = "matins.job"

# A value for each value of the labels, in their order; of a gauge without labels one value, for ().
Values = Mapping[tuple[str, ...], float]


class Gauge:
    """A number with these labels and no others; tells nothing before `tell`, and nothing any more once that is over."""

    def __init__(self, name: str, unit: str, description: str, *labels: str) -> None:
        self.name = name
        self.unit = unit
        self._description = description
        self.labels = labels
        self._told: tuple[float, Values] = (0.0, {})
        self.bind(NoOpMeter("matins"))

    def bind(self, meter: Meter) -> None:
        """Tell it to `meter` from now on."""
        meter.create_observable_gauge(self.name, [self._observe], self.unit, self._description)

    def tell(self, values: Values, *, seconds: float) -> None:
        """Tell these for so many seconds. Empty: nothing at once."""
        # Read in the exporter's thread: both change together.
        self._told = (clock.monotonic() + seconds, dict(values))

    def _observe(self, _options: CallbackOptions) -> Iterable[Observation]:
        until, values = self._told
        if clock.monotonic() > until:
            return []
        return [Observation(value, dict(zip(self.labels, named, strict=True))) for named, value in values.items()]


class Gauges:
    """Every gauge of a process."""

    def __init__(self) -> None:
        self.last_success = Gauge(
            "matins.job.last_success.timestamp", "s", "When the last occurrence that succeeded was closed", JOB_LABEL
        )
        self.next_due = Gauge(
            "matins.job.next_due.timestamp", "s", "When the next occurrence to be claimed is, or was, due", JOB_LABEL
        )
        self.interval = Gauge(
            "matins.job.interval", "s", "From the last instant of the schedule to the next", JOB_LABEL
        )
        self.run_duration = Gauge(
            "matins.job.last_run.duration", "s", "From the claim to the close of the last scheduled run", JOB_LABEL
        )
        self.run_lag = Gauge(
            "matins.job.last_run.lag", "s", "From when the last scheduled run was due to its claim", JOB_LABEL
        )
        self.run_attempts = Gauge(
            "matins.job.last_run.attempts", "{attempt}", "Attempts to claim the last scheduled run", JOB_LABEL
        )
        self.run_wins = Gauge(
            "matins.job.last_run.wins", "{claim}", "Attempts that claimed the last scheduled run", JOB_LABEL
        )
        self.run_accounts = Gauge(
            "matins.job.last_run.accounts", "{account}", "Accounts of the last scheduled run", JOB_LABEL, "outcome"
        )
        self.open_alerts = Gauge("matins.alerts.open", "{alert}", "Open alerts, by kind", "kind")
        self.oldest_unstarted = Gauge(
            "matins.oldest_unstarted.age", "s", "Since when the oldest occurrence that is due waits for its claim"
        )
        self.deployed = Gauge(
            "matins.deploy.timestamp", "s", "When the version of a system that runs began to", "system", "version"
        )
        self.observed = Gauge("matins.observed.timestamp", "s", "When these were read from the database")

    def gauges(self) -> tuple[Gauge, ...]:
        """Return every gauge."""
        return tuple(one for one in vars(self).values() if isinstance(one, Gauge))
