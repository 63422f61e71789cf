"""The life of a service: start, run its parts in one task group, drain when asked to, end in time, and say why.

The first SIGTERM or SIGINT asks for a drain; what hasn't ended after the grace period is cancelled; what ignores even
that, a blocked event loop included, ends with the process a few seconds later. A second signal ends the process at
once: nothing is lost by it, since a crash is a step not taken. A part that dies takes the service with it, under its
name.

Signals are taken by a thread, not through the event loop, so that a blocked loop can't keep the second one waiting.
"""

import asyncio
import contextlib
import math
import os
import select
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import NoReturn, Self, TypeAlias

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from shared import clock, telemetry
from shared.errors import MatinsError
from shared.health import Health
from shared.logs import logger
from shared.loop import every
from shared.parts import PartDied, start_part
from shared.stopping import Stopping, Wake

__all__ = [
    "End",
    "PartDied",
    "Stopping",
    "Wake",
    "every",
    "instance_id",
    "leave",
    "loop_heartbeat",
    "run_service",
    "start_part",
]

CLEAN = 0
FAILED = 1
INTERRUPTED = 130
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LAST_RESORT_SECONDS = 5.0
_BEAT_SECONDS = 1.0
# Beside the numbers of signals, which are neither.
_OVER = b"\x00"
_DEADLINE = b"\xff"
_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class End:
    """How a service has ended: its exit code, and what its last line says."""

    code: int
    event: str
    values: dict[str, str]

    def tell(self) -> None:
        """Write the last line."""
        (_log.error if self.code else _log.info)(self.event, **self.values)


Start: TypeAlias = Callable[[TaskGroup, Stopping], Awaitable[None]]


@cache
def instance_id() -> str:
    """Return the id of this process, random and made at its first use: never a host's or a pod's name."""
    return str(uuid.uuid4())


async def loop_heartbeat(health: Health) -> None:
    """Show, until cancelled, that the event loop runs."""
    while True:
        health.beat()
        await clock.sleep(_BEAT_SECONDS)


async def run_service(
    name: str,
    start: Start,
    *,
    grace_period: timedelta,
    health: Health | None = None,
    health_address: tuple[str, int] | None = None,
) -> End:
    """Run a service to its end, and say how it has ended; see `leave`.

    `start` gets the task group of all parts and the `Stopping` that asks for a drain; the service lasts until `start`
    has returned and every task in the group has ended. The exit code is 0 after a drain within `grace_period`, 1 if
    that was not enough or if something died, which the last line names. A second signal ends the process with 130.
    """
    stopping = Stopping()
    shown = health or Health()
    shown.part("drain", lambda: "stopping" if stopping.requested else None)
    with _Watchman(stopping, grace_period) as watchman:
        try:
            died = _serve(shown, health_address) or await _run_parts(start, stopping, grace_period, shown, watchman)
        finally:
            shown.close()
            # Sending what is queued is bounded in time, and blocks.
            await anyio.to_thread.run_sync(telemetry.shutdown, abandon_on_cancel=True)
    if died:
        return End(_exit_code(died[0]), "service failed", {"name": name} | _blame(died[0], name))
    return End(CLEAN, "service ended", {"name": name, "reason": stopping.reason or "all its work is done"})


def leave(end: End) -> NoReturn:
    """Write the last line and end the process, without waiting for threads whose work was abandoned.

    Called when the event loop is closed, which may have had something to say of what it had to break off.
    """
    end.tell()
    code = end.code
    sys.stdout.flush()
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join(1.0)
            if thread.is_alive():
                os._exit(code)
    sys.exit(code)


def _serve(health: Health, address: tuple[str, int] | None) -> list[Exception]:
    try:
        if address is not None:
            health.serve(*address)
    except OSError as error:
        return [PartDied("health endpoint", str(error))]
    return []


async def _run_parts(
    start: Start, stopping: Stopping, grace_period: timedelta, health: Health, watchman: "_Watchman"
) -> list[Exception]:
    """Run everything; return what died, then whether the drain took too long."""
    died: list[Exception] = []
    overdue: list[Exception] = []

    async def end_in_time(group: TaskGroup) -> None:
        await stopping.wait()
        grace = grace_period.total_seconds()
        _log.info("stopping", reason=stopping.reason, grace_period=grace)
        watchman.end_in_time()
        await clock.sleep(grace)
        overdue.append(PartDied("drain", f"not over within {grace:g} s; what still ran was cancelled"))
        group.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as around:
            around.start_soon(loop_heartbeat, health)
            async with anyio.create_task_group() as group:
                around.start_soon(end_in_time, group)
                await _started(start, group, stopping)
            around.cancel_scope.cancel()
    except* Exception as failures:  # noqa: BLE001 - whatever died is named in the last line
        died.extend(_leaves(failures))
    # What a group gives first need not be what died first, and only that one says why. What says no time was raised by
    # something that was being ended with it.
    return sorted(died, key=lambda one: one.at if isinstance(one, PartDied) else math.inf) + overdue


async def _started(start: Start, group: TaskGroup, stopping: Stopping) -> None:
    try:
        await start(group, stopping)
    except Exception as error:
        if isinstance(error, BaseExceptionGroup) and error.subgroup(PartDied) is not None:
            # A part has said so itself.
            raise
        stopping.request(f"the start failed: {type(error).__name__}")
        # What we raise ourselves says all there is to say.
        trace = None if isinstance(error, MatinsError) else error
        _log.error("the start failed", error_class=type(error).__name__, reason=str(error), exc_info=trace)
        raise


def _leaves(failures: BaseExceptionGroup[Exception]) -> Iterator[Exception]:
    for failure in failures.exceptions:
        if isinstance(failure, BaseExceptionGroup):
            yield from _leaves(failure)
        else:
            yield failure


def _exit_code(error: Exception) -> int:
    """Give 2 where starting again cannot help, since it is what was set that is wrong; else 1."""
    reason = error.__cause__ if isinstance(error, PartDied) and error.__cause__ is not None else error
    return reason.exit_code if isinstance(reason, MatinsError) else FAILED


def _blame(error: Exception, service: str) -> dict[str, str]:
    if isinstance(error, PartDied):
        return {"part": error.name, "reason": error.reason}
    return {"part": service, "reason": f"{type(error).__name__}: {error}"}


class _Watchman:
    """Takes the signals and keeps the deadlines from a thread of its own: the event loop may be what is stuck.

    The interpreter writes each signal's number to a socket as it arrives, whatever the main thread is doing; its own
    handlers run only between two steps of the main thread, which a blocked one never reaches.
    """

    def __init__(self, stopping: Stopping, grace_period: timedelta) -> None:
        self._stopping = stopping
        self._seconds = grace_period.total_seconds() + _LAST_RESORT_SECONDS
        self._ends_at: float | None = None
        self._heard, self._told = socket.socketpair()
        self._told.settimeout(0)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._watch, name="watchman", daemon=True)
        self._before = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._thread.start()
        # Elsewhere than in the main thread there are no signals to take.
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before.callback(signal.signal, number, signal.signal(number, lambda *_: None))
            self._before.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(self._told.fileno()))
        return self

    def __exit__(self, *_: object) -> None:
        self._before.close()
        self._told.send(_OVER)
        self._thread.join()
        self._told.close()
        self._heard.close()

    def end_in_time(self) -> None:
        """Give the process the grace period and a little more to end, unless it has been given that before."""
        self._told.send(_DEADLINE)

    def _watch(self) -> None:
        signals = 0
        while True:
            left = None if self._ends_at is None else max(0.001, self._ends_at - clock.monotonic())
            self._heard.settimeout(left)
            try:
                told = self._heard.recv(1)
            except TimeoutError:
                _end_at_once(FAILED, "service failed", part="drain", reason="even cancelling took too long")
            if told == _OVER:
                return
            if told[0] in _SIGNALS:
                signals += 1
                name = signal.Signals(told[0]).name
                if signals > 1:
                    _end_at_once(INTERRUPTED, "ended at once", reason=f"a second signal, {name}")
                self._loop.call_soon_threadsafe(self._stopping.request, name)
            if (told == _DEADLINE or told[0] in _SIGNALS) and self._ends_at is None:
                self._ends_at = clock.monotonic() + self._seconds


def _end_at_once(code: int, event: str, **values: str) -> NoReturn:
    # Whoever reads the lines may be what is stuck.
    with contextlib.suppress(Exception):
        if select.select([], [sys.stdout.fileno()], [], 0)[1]:
            _log.error(event, **values)
    os._exit(code)
