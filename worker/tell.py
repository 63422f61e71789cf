"""Telling what became of accounts: failures logged at a bounded rate, successes only at debug, counts as metrics."""

from dataclasses import dataclass

from shared.logs import FailureLog, logger
from shared.telemetry import Span, failed_account, metrics
from worker.occurrences import WorkOccurrence
from worker.outcome import Outcome, Result

_REMARKABLE = (Result.FAILED.value, Result.RETRY.value, Result.UNTRIED.value, Result.BLOCKED.value)
_SHOWN_AT_DEBUG = 20
_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells for one job; `failures` bounds how many failures of a class are written each minute."""

    job: str
    failures: FailureLog

    def settled(self, occurrence: WorkOccurrence, generation: int, outcomes: dict[str, Outcome], span: Span) -> None:
        """Tell of accounts whose settle has committed."""
        identity = str(occurrence.identity)
        counts: dict[str, int] = {}
        for account, outcome in outcomes.items():
            counts[outcome.result.value] = counts.get(outcome.result.value, 0) + 1
            if outcome.error_class is not None:
                self._failed(identity, generation, account, outcome)
                if len(outcomes) > 1:
                    failed_account(self.job, identity, account, outcome.error_class, outcome.error or "")
                else:
                    span.fail(outcome.error_class, outcome.error or "")
        for result, count in counts.items():
            metrics.accounts.add(count, job=self.job, outcome=result)
        if counts:
            told = next((result for result in _REMARKABLE if result in counts), next(iter(counts)))
            span.set(outcome=told, accounts=len(outcomes))
            if len(outcomes) == 1:
                span.set(account=next(iter(outcomes)))
            shown = list(outcomes)[:_SHOWN_AT_DEBUG]
            _log.debug("accounts settled", occurrence=identity, accounts=shown, **counts)

    def interrupted(self, error: Exception) -> None:
        """Tell that a server is away, and that the work is tried again with its messages held."""
        self.failures.failure(
            "work will be tried again", job=self.job, error_class=type(error).__name__, reason=str(error)
        )

    def fenced(self, occurrence: WorkOccurrence, reason: str) -> None:
        """Tell of a settle that changed nothing, since the rows were no longer this worker's."""
        _log.warning("fenced", occurrence=str(occurrence.identity), reason=reason)
        metrics.fenced_writes.add(1, job=self.job, where="settle")

    def kills_workers(self, occurrence: WorkOccurrence, account: str, reason: str) -> None:
        """Tell of an account whose message goes to the dead letters."""
        _log.error("account ends its workers", occurrence=str(occurrence.identity), account=account, reason=reason)

    def _failed(self, identity: str, generation: int, account: str, outcome: Outcome) -> None:
        self.failures.failure(
            "account failed",
            job=self.job,
            error_class=outcome.error_class or "",
            occurrence=identity,
            generation=generation,
            account=account,
            outcome=outcome.result.value,
            reason=outcome.error or "",
        )
