"""The numbers that Matins counts, each with the labels that it may carry and no others.

A label is a word from a small, known set (a job, an outcome, a destination). No method takes an account's id, so no
caller can make a series for each account. Until `bind` gives the instruments a meter they count nothing.
"""

from collections.abc import Collection
from typing import Final

from opentelemetry.metrics import Meter, NoOpMeter

from shared.telemetry_gauges import JOB_LABEL, Gauge, Gauges

_SHORT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_LONG = (1.0, 5.0, 15.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 10_800.0, 21_600.0, 86_400.0)
_LAG = (0.1, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 21_600.0)
# Each job that is begun is a few series of each process.
MOST_BEGUN: Final = 1000
_RABBITMQ = {"messaging.system": "rabbitmq"}


class _Counter:
    """A number that only grows."""

    def __init__(self, name: str, unit: str, description: str) -> None:
        self.name = name
        self._unit = unit
        self._description = description
        self.bind(NoOpMeter("matins"))

    def bind(self, meter: Meter) -> None:
        self._add = meter.create_counter(self.name, self._unit, self._description).add


class _Histogram:
    """How long something took, in seconds."""

    def __init__(self, name: str, description: str, boundaries: tuple[float, ...]) -> None:
        self.name = name
        self._description = description
        self._boundaries = boundaries
        self.bind(NoOpMeter("matins"))

    def bind(self, meter: Meter) -> None:
        self._record = meter.create_histogram(
            self.name, "s", self._description, explicit_bucket_boundaries_advisory=self._boundaries
        ).record


class JobCounter(_Counter):
    """Counted by job."""

    def add(self, amount: int, *, job: str) -> None:
        """Count `amount` more for `job`."""
        self._add(amount, {JOB_LABEL: job})


class OutcomeCounter(_Counter):
    """Counted by job and outcome."""

    def add(self, amount: int, *, job: str, outcome: str) -> None:
        """Count `amount` more for `job` that ended as `outcome`."""
        self._add(amount, {JOB_LABEL: job, "outcome": outcome})


class FenceCounter(_Counter):
    """Counted by job and by the write that the fence refused."""

    def add(self, amount: int, *, job: str, where: str) -> None:
        """Count `amount` refused writes of the step `where`."""
        self._add(amount, {JOB_LABEL: job, "where": where})


class ChannelCounter(_Counter):
    """Counted by channel and outcome."""

    def add(self, amount: int, *, channel: str, outcome: str) -> None:
        """Count `amount` messages through `channel` that were `outcome`."""
        self._add(amount, {"channel": channel, "outcome": outcome})


class AlertCounter(_Counter):
    """Counted by the alert's kind and by what became of it."""

    def add(self, amount: int, *, kind: str, event: str) -> None:
        """Count `amount` alerts of `kind` that were `opened` or `closed`."""
        self._add(amount, {"kind": kind, "event": event})


class MessageCounter(_Counter):
    """Counted by destination, as the messaging conventions have it."""

    def add(self, amount: int, *, operation: str, destination: str, error_class: str = "") -> None:
        """Count `amount` messages of `operation` (`publish` or `process`)."""
        self._add(amount, _messaging(operation, destination, error_class))


class JobHistogram(_Histogram):
    """Seconds by job."""

    def record(self, seconds: float, *, job: str) -> None:
        """Note one length of time for `job`."""
        self._record(seconds, {JOB_LABEL: job})


class OutcomeHistogram(_Histogram):
    """Seconds by job and outcome."""

    def record(self, seconds: float, *, job: str, outcome: str) -> None:
        """Note one length of time for `job` that ended as `outcome`."""
        self._record(seconds, {JOB_LABEL: job, "outcome": outcome})


class MessageHistogram(_Histogram):
    """Seconds by destination, as the messaging conventions have it."""

    def record(self, seconds: float, *, operation: str, destination: str, error_class: str = "") -> None:
        """Note how long one `operation` (`publish` or `process`) took."""
        self._record(seconds, _messaging(operation, destination, error_class))


def _messaging(operation: str, destination: str, error_class: str) -> dict[str, str]:
    kind = "send" if operation == "publish" else operation
    labels = _RABBITMQ | {"messaging.operation.name": operation, "messaging.operation.type": kind}
    labels["messaging.destination.name"] = destination
    return labels | ({"error.type": error_class} if error_class else {})


class Metrics(Gauges):
    """Every instrument; `metrics` is the one of this process."""

    def __init__(self) -> None:
        super().__init__()
        self.claim_attempts = JobCounter("matins.claim.attempts", "{attempt}", "Attempts to claim a due occurrence")
        self.claim_wins = JobCounter("matins.claim.wins", "{occurrence}", "Occurrences claimed by this process")
        self.leadership_taken = JobCounter(
            "matins.leadership.taken", "{lead}", "Times that this process became a job's leader"
        )
        self.leadership_lost = JobCounter(
            "matins.leadership.lost", "{lead}", "Times that a lead ran out before this process had renewed it"
        )
        self.takeovers = JobCounter("matins.takeovers", "{occurrence}", "Occurrences taken over after a lease ran out")
        self.accounts = OutcomeCounter("matins.accounts", "{account}", "Accounts settled, by outcome")
        self.occurrences = OutcomeCounter("matins.occurrences", "{occurrence}", "Occurrences ended, by outcome")
        self.retries = JobCounter("matins.retries", "{account}", "Accounts sent to a delay queue for another try")
        self.dead_letters = JobCounter("matins.dead_letters", "{message}", "Messages given up by the broker")
        self.fenced_writes = FenceCounter("matins.fenced_writes", "{write}", "Writes refused for a stale epoch")
        self.resends = JobCounter("matins.resends", "{message}", "Messages published again because one was lost")
        self.differing_definitions = JobCounter(
            "matins.differing_definitions", "{difference}", "Times that live processes began to differ in a definition"
        )
        self.job_troubles = JobCounter("matins.job.troubles", "{trouble}", "Times that trouble of one job alone began")
        self.handed_on = MessageCounter(
            "matins.handed_on", "{message}", "Messages handed on, uncharged, for want of their job's code or version"
        )
        self.publish_failures = JobCounter(
            "matins.publish.failures", "{message}", "Messages that the broker did not confirm"
        )
        self.calls = OutcomeCounter("matins.calls", "{call}", "Calls of outside schedulers, by outcome")
        self.alerts = AlertCounter("matins.alerts", "{alert}", "Alerts opened and closed by this process's watch")
        self.notifications = ChannelCounter("matins.notifications", "{attempt}", "Attempts to tell of alerts")
        self.lag = JobHistogram("matins.lag", "From the scheduled instant to the claim", _LAG)
        self.occurrence_duration = OutcomeHistogram("matins.occurrence.duration", "From the claim to the close", _LONG)
        self.account_duration = OutcomeHistogram("matins.account.duration", "The job's code for one account", _SHORT)
        self.sent_messages = MessageCounter("messaging.client.sent.messages", "{message}", "Messages sent")
        self.consumed_messages = MessageCounter("messaging.client.consumed.messages", "{message}", "Messages consumed")
        self.client_operation_duration = MessageHistogram(
            "messaging.client.operation.duration", "Duration of a publish with its confirm", _SHORT
        )
        self.process_duration = MessageHistogram("messaging.process.duration", "Processing of a message", _SHORT)

    def bind(self, meter: Meter) -> None:
        """Count with `meter` from now on."""
        for instrument in self.instruments():
            instrument.bind(meter)

    def begin(self, kind: str, jobs: Collection[str]) -> None:
        """Begin at 0 what a process of `kind` (`trigger` or `worker`) counts of each job, unless there are very many.

        Who asks for an increase does not see the event that a counter begins with.
        """
        if len(jobs) > MOST_BEGUN:
            return
        workers, triggers = (self.retries, self.dead_letters), (self.claim_attempts, self.claim_wins, self.resends)
        for job in jobs:
            for counter in workers if kind == "worker" else (*triggers, self.takeovers):
                counter.add(0, job=job)
            for outcome in ("succeeded", "failed", "dead") if kind == "worker" else ():
                self.accounts.add(0, job=job, outcome=outcome)

    def instruments(self) -> tuple[_Counter | _Histogram | Gauge, ...]:
        """Return every instrument; each has its `name`."""
        return tuple(vars(self).values())


metrics = Metrics()
