"""Calling a job's code: under its timeout, a plain function in a thread, the connection lent and taken back."""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import anyio
import anyio.from_thread

from shared.postgres import Session
from worker.left_behind import LeftBehind
from worker.outcome import TimedOut
from worker.statement_guard import refuse_transaction_control

Function = Callable[[Any], Any]


class LentConnection:
    """The transaction's connection as a handler sees it: only the calls of the contract, and only while it is lent.

    A handler's own statements may take as long as the handler, not only as long as ours.
    """

    __slots__ = ("_returned", "_session", "_timeout")

    def __init__(self, session: Session, timeout: timedelta) -> None:
        """Lend `session`; `timeout` is for a statement that names none of its own."""
        self._session = session
        self._timeout = timeout.total_seconds()
        self._returned = False

    def take_back(self) -> None:
        """End the loan: a later call raises RuntimeError."""
        self._returned = True

    def _lent(self, query: str) -> Session:
        if self._returned:
            problem = "the connection was lent for the call only, and the call is over"
            raise RuntimeError(problem)
        refuse_transaction_control(query)
        return self._session

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        """Run a statement and give its command tag."""
        tag: str = await self._lent(query).execute(query, *args, timeout=timeout or self._timeout)
        return tag

    async def executemany(self, command: str, args: Iterable[Sequence[Any]], *, timeout: float | None = None) -> None:
        """Run a statement for each row of arguments."""
        await self._lent(command).executemany(command, args, timeout=timeout or self._timeout)

    async def fetch(self, query: str, *args: Any, timeout: float | None = None) -> list[Any]:
        """Run a query and give its rows."""
        rows: list[Any] = await self._lent(query).fetch(query, *args, timeout=timeout or self._timeout)
        return rows

    async def fetchrow(self, query: str, *args: Any, timeout: float | None = None) -> Any:
        """Run a query and give its first row, or None."""
        return await self._lent(query).fetchrow(query, *args, timeout=timeout or self._timeout)

    async def fetchval(self, query: str, *args: Any, column: int = 0, timeout: float | None = None) -> Any:
        """Run a query and give one value of its first row, or None."""
        return await self._lent(query).fetchval(query, *args, column=column, timeout=timeout or self._timeout)


class BlockingLentConnection:
    """The same for a plain function in its thread: each call is done by the event loop, and waited for."""

    __slots__ = ("_connection", "_lock", "_scope")

    def __init__(self, connection: LentConnection) -> None:
        """Lend a connection to a thread."""
        self._connection = connection
        self._lock = anyio.Lock()
        self._scope: anyio.CancelScope | None = None

    async def take_back(self) -> None:
        """End the loan, also from a thread that a timeout has left behind in the middle of a statement."""
        self._connection.take_back()
        if self._scope is not None:
            self._scope.cancel()
        async with self._lock:
            pass

    async def _in_loop(self, call: Callable[[], Awaitable[Any]]) -> Any:
        async with self._lock:
            with anyio.CancelScope() as self._scope:
                return await call()
            raise TimedOut

    def _wait(self, name: str, *args: Any, **options: Any) -> Any:
        method = getattr(self._connection, name)
        return anyio.from_thread.run(self._in_loop, lambda: method(*args, **options))

    def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        """Run a statement and give its command tag."""
        return str(self._wait("execute", query, *args, timeout=timeout))

    def executemany(self, command: str, args: Iterable[Sequence[Any]], *, timeout: float | None = None) -> None:
        """Run a statement for each row of arguments."""
        self._wait("executemany", command, list(args), timeout=timeout)

    def fetch(self, query: str, *args: Any, timeout: float | None = None) -> list[Any]:
        """Run a query and give its rows."""
        return list(self._wait("fetch", query, *args, timeout=timeout))

    def fetchrow(self, query: str, *args: Any, timeout: float | None = None) -> Any:
        """Run a query and give its first row, or None."""
        return self._wait("fetchrow", query, *args, timeout=timeout)

    def fetchval(self, query: str, *args: Any, column: int = 0, timeout: float | None = None) -> Any:
        """Run a query and give one value of its first row, or None."""
        return self._wait("fetchval", query, *args, column=column, timeout=timeout)


@dataclass(frozen=True, slots=True)
class Invocation:
    """A job's function, ready to be called; `threads` bounds the plain functions at once.

    `blocking` tells whether the function is a plain one, for a thread; `left_behind` counts those that outlive a call.
    """

    function: Function
    timeout: timedelta
    threads: anyio.CapacityLimiter
    job: str = ""
    left_behind: LeftBehind = field(default_factory=LeftBehind)
    blocking: bool = field(init=False)

    def __post_init__(self) -> None:
        """Look at the function once."""
        object.__setattr__(self, "blocking", not is_async(self.function))

    async def with_connection(self, session: Session, make_call: Callable[[Any], Any]) -> Any:
        """Call the function with a connection lent for the call: `make_call` is given it and gives the call."""
        lent = LentConnection(session, self.timeout)
        if not self.blocking:
            try:
                return await self.plainly(make_call(lent))
            finally:
                lent.take_back()
        blocking = BlockingLentConnection(lent)
        try:
            return await self.plainly(make_call(blocking))
        finally:
            with anyio.CancelScope(shield=True):
                await blocking.take_back()

    async def plainly(self, call: Any) -> Any:
        """Call the function. Raises TimedOut, or whatever it raises; SystemExit too is only the call's own failure."""
        with anyio.move_on_after(self.timeout.total_seconds()) as scope:
            try:
                if self.blocking:
                    return _finished(await self.left_behind.run(self.job, self.function, call, self.threads))
                return await self.function(call)
            except asyncio.CancelledError as error:
                # A library's own cancellation inside the job's code is not ours, and must not end the worker's task.
                task = asyncio.current_task()
                if scope.cancel_called or (task is not None and task.cancelling()):
                    raise
                problem = "the call cancelled itself"
                raise RuntimeError(problem) from error
        problem = f"did not end within {self.timeout.total_seconds():g} s"
        raise TimedOut(problem)


def is_async(function: Function) -> bool:
    """Tell whether a handler is an async one: a function, one behind decorators or partials, or an object's call."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - whether its call is async, not whether it has one


def _finished(result: Any) -> Any:
    """Give a plain function's result. Raises TypeError for a coroutine: its work has not begun, and never would."""
    if not (inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result)):
        return result
    if inspect.iscoroutine(result):
        result.close()
    problem = (
        "the handler is taken for a plain function, but what it gave still has to be run: write `async def` without "
        "`yield`, and functools.wraps in its decorators"
    )
    raise TypeError(problem)
