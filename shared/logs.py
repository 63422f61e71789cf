"""One line per event on standard output: JSON for machines, text for a person at a terminal.

Every line carries `ts` (RFC 3339, UTC), `level`, `event`, `service` and `instance`, the trace that is current, and the
values of the event. Values are made safe by `shared.masking`. Lines of the standard library's `logging` (the drivers,
the HTTP server, warnings, a job's own code) come out of the same place, from WARNING on.
"""

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, cast

import orjson
import structlog
from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger

from shared import clock
from shared.masking import plain_traceback, plain_value

Logger: TypeAlias = FilteringBoundLogger
Layout: TypeAlias = Literal["json", "text", "auto"]
_Traces: TypeAlias = Callable[[], tuple[str, str] | None]

_FRAMES = 40
_MINUTE = 60.0
_CLASSES_AT_ONCE = 1000
_OTHERS = "(other classes)"
_FIRST = ("ts", "level", "event", "service", "instance", "module", "trace_id", "span_id")


class _Output:
    """Composes a line and writes it to whatever `sys.stdout` is at that moment, so that a captured one is respected."""

    def __init__(self) -> None:
        self.service = ""
        self.instance = ""
        self.as_text = False
        self.traces: _Traces = lambda: None
        # Reentrant: the handler of a signal may log while the main thread is writing.
        self._lock = threading.RLock()

    def compose(self, level: str, values: Mapping[str, object], at: datetime, error: object = None) -> str:
        event = values.get("event", "")
        known: dict[str, object] = {"ts": _rfc_3339(at), "level": level, "event": event}
        known |= {"service": self.service, "instance": self.instance, "module": values.get("module", "")}
        if trace := self.traces():
            known["trace_id"], known["span_id"] = trace
        rest = {f"{key}_" if key in _FIRST else key: values[key] for key in values if key not in {"event", "module"}}
        line = {key: plain_value(value) for key, value in (known | rest).items()}
        if shown := _traceback_of(error):
            line["exception"] = shown
        return _as_text(line) if self.as_text else orjson.dumps(line).decode()

    def write(self, line: str) -> None:
        try:
            with self._lock:
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
        except (OSError, ValueError):
            # Whoever read the lines is gone; the work is not.
            return

    # structlog ends every call in the method named as the level.
    debug = info = warning = error = critical = exception = log = msg = write


_output = _Output()


def _rfc_3339(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _traceback_of(error: object) -> str:
    match error:
        case BaseException():
            raised: BaseException | None = error
        case (_, BaseException() as raised, _):
            pass
        case None | False | (None, None, None):
            return ""
        case _:
            raised = sys.exc_info()[1]
    return plain_traceback("".join(traceback.format_exception(raised, limit=-_FRAMES))) if raised else ""


def _as_text(line: dict[str, object]) -> str:
    event = str(line["event"]).replace("\n", "\\n")
    shown = (f"{key}={_quoted(value)}" for key, value in line.items() if key not in {*_FIRST, "exception"})
    head = " ".join((f"{line['ts']} {str(line['level']).upper():<8} {event}", *shown))
    if "exception" not in line:
        return head
    # Indented, so that a message with line breaks in it can't pass for a line of ours.
    return "\n".join((head, *(f"    {part}" for part in str(line["exception"]).rstrip().split("\n"))))


def _quoted(value: object) -> str:
    if isinstance(value, str) and value and value.isascii() and not set(value) & set(" \t\n\"'=\\"):
        return value
    return orjson.dumps(value).decode()


def _render(_logger: WrappedLogger, method: str, values: EventDict) -> str:
    error = values.pop("exc_info", None)
    level = "error" if method == "exception" else method
    return _output.compose(level, values, clock.utc_now(), error)


class _FromStandardLibrary(logging.Handler):
    """Takes the lines of the standard library's `logging`."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            values = structlog.contextvars.get_contextvars() | {"event": record.getMessage(), "module": record.name}
            at = datetime.fromtimestamp(record.created, UTC)
            _output.write(_output.compose(record.levelname.lower(), values, at, record.exc_info))
        except Exception:  # noqa: BLE001 - as logging.Handler asks: a line that can't be composed is reported, not raised
            self.handleError(record)


_handler = _FromStandardLibrary()


def configure(level: str, layout: Layout, *, service: str, instance: str) -> None:
    """Choose what is written and how; to be called once at start, and again wherever a test wants to.

    `level` is `debug`, `info`, `warning` or `error`; `layout` is `json`, `text`, or `auto`: text on a terminal, else
    JSON. `service` and `instance` are on every line.

    Raises:
        ValueError: the level is none of those.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f"{level!r} is no log level")
    _output.service, _output.instance = service, instance
    _output.as_text = layout == "text" or (layout == "auto" and sys.stdout.isatty())
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, _render],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        context_class=dict,
        logger_factory=lambda *_: _output,
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    if _handler not in root.handlers:
        root.addHandler(_handler)
    root.setLevel(max(number, logging.WARNING))
    logging.captureWarnings(capture=True)


def logger(name: str) -> Logger:
    """Return a logger whose lines carry `name`; it may be made before `configure`."""
    return cast("Logger", structlog.get_logger(module=name))


def bound(**values: Any) -> AbstractContextManager[None]:
    """Put `values` on every line that is written inside the block, by this task and by those that it starts."""
    return structlog.contextvars.bound_contextvars(**values)


def identify_traces(current: _Traces) -> None:
    """Say how to find the current trace: `current` returns its id and its span's id in hexadecimal, or None."""
    _output.traces = current


@dataclass
class _Minute:
    began: float
    written: int = 0
    suppressed: int = 0


class FailureLog:
    """Writes failures at a bounded rate: a night on which every account fails must not bury the log.

    The first `limit_per_minute` of each (job, class of error) are written in full every minute; the rest of that minute
    is counted, and the count is one line. Its owner calls `report` now and then, so that the last count is written too.
    """

    def __init__(
        self, log: Logger, limit_per_minute: int = 10, *, monotonic: Callable[[], float] = clock.monotonic
    ) -> None:
        self._log = log
        self._limit = limit_per_minute
        self._monotonic = monotonic
        self._minutes: dict[tuple[str, str], _Minute] = {}

    def failure(
        self, event: str, *, error_class: str, job: str = "", error: BaseException | None = None, **values: Any
    ) -> bool:
        """Write one failure, with the traceback of `error` if given; return False if it was only counted."""
        self.report()
        key = (job, error_class)
        if key not in self._minutes and len(self._minutes) >= _CLASSES_AT_ONCE:
            key = (job, _OTHERS)
        minute = self._minutes.setdefault(key, _Minute(began=self._monotonic()))
        if minute.written >= self._limit:
            minute.suppressed += 1
            return False
        minute.written += 1
        self._log.warning(event, **_named(job, error_class), exc_info=error, **values)
        return True

    def report(self, *, everything: bool = False) -> None:
        """Write the counts of the minutes that are over; of all with `everything`, at the end of a process."""
        now = self._monotonic()
        # Oldest first, so the first one that is not over ends the search.
        while self._minutes:
            key = next(iter(self._minutes))
            minute = self._minutes[key]
            if not everything and now - minute.began < _MINUTE:
                return
            del self._minutes[key]
            if minute.suppressed:
                self._log.warning("failures not shown", **_named(*key), suppressed=minute.suppressed)


def _named(job: str, error_class: str) -> dict[str, Any]:
    return ({"job": job} if job else {}) | {"error_class": error_class}
