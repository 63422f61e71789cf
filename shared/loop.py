"""A loop is three words: pass, wait, repeat. Tests call the pass, never the loop.

A pass that fails for a passing reason (the database is away) is written down and tried again after a short wait: its
part is seen to be unwell within seconds, and to be well again as soon. Any other failure ends the loop, and with it the
service. The loop's part of the health says when passes keep failing, or when none has ended for long.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from shared import clock
from shared.health import Health
from shared.logs import FailureLog, logger
from shared.masking import plain
from shared.stopping import Stopping, Wake

_FAILURES_TO_REPORT = 3
_LONGEST_RETRY_SECONDS = 1.0
_LEAST_WEDGED = timedelta(seconds=60)
_REASON_AT_MOST = 200
_log = logger(__name__)


class _Progress:
    """How the passes of one loop have gone."""

    def __init__(self, name: str, wedged_after: timedelta) -> None:
        self._name = name
        self._wedged_after = wedged_after.total_seconds()
        self._ended_at = clock.monotonic()
        self._failures = 0
        self._latest = ""
        self._failure_log = FailureLog(_log)

    def reason(self) -> str | None:
        """Return what is wrong with the loop, if anything; called in the health endpoint's thread."""
        silent = clock.monotonic() - self._ended_at
        if silent > self._wedged_after:
            return f"no pass has ended for {silent:.0f} s"
        if self._failures >= _FAILURES_TO_REPORT:
            return f"failed {self._failures} times in a row: {self._latest}"
        return None

    def completed(self) -> None:
        if self._failures:
            _log.info("passes complete again", part=self._name, failures=self._failures)
        self._failures = 0
        self._ended_at = clock.monotonic()
        self._failure_log.report()

    def failed(self, error: Exception) -> None:
        self._latest = plain(f"{type(error).__name__}: {error}", _REASON_AT_MOST)
        self._failures += 1
        self._ended_at = clock.monotonic()
        self._failure_log.failure(
            "a pass failed",
            part=self._name,
            error_class=type(error).__name__,
            failures=self._failures,
            reason=str(error),
        )


async def every(
    name: str,
    interval: timedelta,
    run_pass: Callable[[], Awaitable[None]],
    stopping: Stopping,
    *,
    health: Health,
    transient: Callable[[Exception], bool],
    wake: Wake | None = None,
    wedged_after: timedelta | None = None,
) -> None:
    """Run a pass now, again `interval` after it has ended or when `wake` is called, until `stopping`.

    An exception for which `transient` is true is logged at a bounded rate, and the pass is tried again within a second;
    any other passes through. `health` gets a
    part `name`: unwell after three failures in a row, or when no pass has ended for `wedged_after` (three intervals and
    at least a minute, unless given).
    """
    call = wake or Wake()
    progress = _Progress(name, max(3 * interval, _LEAST_WEDGED) if wedged_after is None else wedged_after)
    health.part(name, progress.reason)
    try:
        with stopping.waking(call):
            while not stopping.requested:
                wait = interval.total_seconds()
                if not await _completes(run_pass, progress, transient):
                    wait = min(wait, _LONGEST_RETRY_SECONDS)
                    # Calls that came meanwhile are answered by the wait: a failing pass must not spin.
                    call.clear()
                if not stopping.requested:
                    await call.wait(wait)
    finally:
        health.remove(name)


async def _completes(
    run_pass: Callable[[], Awaitable[None]], progress: _Progress, transient: Callable[[Exception], bool]
) -> bool:
    try:
        await run_pass()
    except Exception as error:
        if not transient(error):
            raise
        progress.failed(error)
        return False
    progress.completed()
    return True
