"""The one place where time enters a process. What decides (due, lease, window) is the database's clock instead."""

import time
from datetime import UTC, datetime

import anyio


def monotonic() -> float:
    """Seconds on a clock that never steps; only differences mean anything."""
    return time.monotonic()


def utc_now() -> datetime:
    """This machine's idea of the present, aware, in UTC: for logs and for measuring its skew, never for a decision."""
    return datetime.now(UTC)


async def sleep(seconds: float) -> None:
    """Wait for `seconds`, or until cancelled."""
    await anyio.sleep(seconds)
