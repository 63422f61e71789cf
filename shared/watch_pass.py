"""The watch's pass: whoever comes first looks, at everything, and changes the alerts, in one transaction.

It runs in triggers and in workers, so that the end of all of one kind is seen by the other. Which process looks is
economy alone: the pass of one that dies or is frozen in it is undone by the server, after 30 seconds at most, and
nobody waits for it meanwhile. While everything is held nothing is judged: nothing is expected of anybody.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Self

from schemas.alert import KINDS
from shared.logs import logger
from shared.postgres import Database, Row, Session, is_transient
from shared.sql_files import statement
from shared.start import Prepared
from shared.telemetry import metrics
from shared.watch import Detector, Finding
from shared.watch_alerts import Alerts, Raised
from shared.watch_clocks import CLOCKS
from shared.watch_differences import DIFFERENCES
from shared.watch_ends import ENDS
from shared.watch_growth import GROWTH
from shared.watch_progress import PROGRESS
from shared.watch_results import RESULTS
from shared.watch_schedules import SCHEDULES
from shared.watch_starts import STARTS
from shared.watch_vanished import VANISHED
from shared.watch_workers import WORKERS

TAKE_WATCH = statement("shared", "take_watch")
DETECTORS: Final = (STARTS, SCHEDULES, WORKERS, ENDS, PROGRESS, RESULTS, VANISHED, DIFFERENCES, CLOCKS, GROWTH)
_MOST_LOGGED: Final = 100
_log = logger(__name__)


@dataclass(slots=True)
class Watch:
    """One process's part in the watch.

    `interval` is how often it looks; it does not where another has looked within the last half of that. `repeat` is the
    rhythm in which open alerts are told again. `troubles` says why detectors fail, by name.
    """

    database: Database
    instance: str
    interval: timedelta
    repeat: timedelta
    detectors: Sequence[Detector] = DETECTORS
    troubles: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, prepared: Prepared, database: Database) -> Self:
        """Give the watch of a process as its settings say."""
        settings = prepared.settings
        return cls(database, prepared.instance.id, settings.watch_interval, settings.alert_repeat)

    async def keep(self) -> None:
        """Look once, as a loop does."""
        await self.watch_pass()

    async def watch_pass(self, now: datetime | None = None) -> Raised | None:
        """Look once; None when it was another's turn, or everything is held. `now` stands for the clock, in tests."""
        async with self.database.transaction() as session:
            turn: Any = await session.fetchrow(TAKE_WATCH, self.instance, self.interval / 2, now)
            if turn is None or turn["held"]:
                return None
            findings, judged = await self._look(session, now)
            alerts = Alerts(turn["environment"], self.instance, self.repeat)
            raised = await alerts.apply(session, findings, judged, now=now)
        for event, rows in (("opened", raised.opened), ("closed", raised.closed)):
            for kind, count in Counter(row["kind"] for row in rows).items():
                metrics.alerts.add(count, kind=kind, event=event)
        _log_changes(raised)
        return raised

    def problem(self) -> str | None:
        """Say which detectors fail, and why."""
        return "; ".join(f"{name}: {reason}" for name, reason in self.troubles.items()) or None

    async def _look(self, session: Session, now: datetime | None) -> tuple[list[Finding], set[str]]:
        """Give what was found, and the kinds of which all was: an alert of another kind may not be over."""
        findings: list[Finding] = []
        failed: set[str] = set()
        for detector in self.detectors:
            try:
                # One that meets what it cannot read leaves the others their transaction.
                async with session.transaction():
                    findings += await detector.look(session, now)
            except Exception as error:
                if is_transient(error):
                    raise
                failed |= detector.kinds
                self._trouble(detector.name, f"{type(error).__name__}: {error}")
            else:
                self.troubles.pop(detector.name, None)
        return findings, {kind for detector in self.detectors for kind in detector.kinds} - failed

    def _trouble(self, name: str, reason: str) -> None:
        if self.troubles.get(name) != reason:
            _log.error("a part of the watch fails", detector=name, reason=reason)
        self.troubles[name] = reason


def _log_changes(raised: Raised) -> None:
    """Write down what was opened and closed; of very much, the first and how much more."""
    for row in raised.opened[:_MOST_LOGGED]:
        _log.warning("alert opened", severity=KINDS[row["kind"]].severity, **_told(row))
    for row in raised.closed[:_MOST_LOGGED]:
        _log.info("alert closed", **_told(row), reason=row["close_reason"])
    opened, closed = (max(0, len(rows) - _MOST_LOGGED) for rows in (raised.opened, raised.closed))
    if opened or closed:
        _log.warning("more alerts than are written down", opened=opened, closed=closed)


def _told(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ("kind", "subject", "job", "told")}
