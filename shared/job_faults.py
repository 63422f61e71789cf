"""The checks on a declaration's values, each giving the faults that it finds."""

import functools
import inspect
import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from shared.declaration import Fault
from shared.explained import UNDECIDED
from shared.limits import LONGEST_TIMEOUT

LONGEST_DURATION: Final = timedelta(days=36_600)
MAXIMUM_CONCURRENCY: Final = 1000
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)
_ROLE = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
_MODES: Final = {
    "AccountCall": "PerAccount",
    "BlockingAccountCall": "PerAccount",
    "ChunkCall": "SetBased",
    "BlockingChunkCall": "SetBased",
    "OutsideCall": "Outside",
    "WorkerCall": "EveryWorker",
    "BlockingWorkerCall": "EveryWorker",
}
_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def duration_faults(
    place: str, value: object, *, minimum: timedelta = timedelta(0), maximum: timedelta = LONGEST_DURATION
) -> tuple[Fault, ...]:
    """Demand a timedelta of at least `minimum`, and of no more than what can still be added to an instant."""
    if value is UNDECIDED or (isinstance(value, timedelta) and minimum <= value <= maximum):
        return ()
    most = "a hundred years" if maximum == LONGEST_DURATION else duration_text(maximum)
    return (
        Fault(
            place,
            f"is {_shown(value)}",
            f"a duration of at least {duration_text(minimum)} and at most {most}, as seconds(30), minutes(10) "
            "or hours(3)",
        ),
    )


def number_faults(
    place: str, value: object, lowest: float, highest: float, *, whole: bool = False
) -> tuple[Fault, ...]:
    """Demand a number (a whole one where asked) from `lowest` to `highest`."""
    kinds = (int,) if whole else (int, float)
    if isinstance(value, kinds) and not isinstance(value, bool) and lowest <= value <= highest:
        return ()
    return (Fault(place, f"is {value!r}", f"a {'whole ' if whole else ''}number from {lowest} to {highest}"),)


def one_of(place: str, value: object, valid: Iterable[str]) -> tuple[Fault, ...]:
    """Demand one of some words."""
    words = tuple(valid)
    if value is UNDECIDED or value in words:
        return ()
    return (Fault(place, f"is {value!r}", " | ".join(f'"{word}"' for word in words)),)


def name_faults(place: str, value: object) -> tuple[Fault, ...]:
    """Demand a name that can stand in a table, a queue and an occurrence's written form."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return ()
    return (Fault(place, f"is {value!r}", "a small letter, then up to 62 small letters, digits, - or _"),)


def role_faults(place: str, value: object) -> tuple[Fault, ...]:
    """Demand a database role's name, or none; `none` names no role, since SQL reads it as the login's own rights."""
    if value is None or (isinstance(value, str) and _ROLE.fullmatch(value) and value != "none"):
        return ()
    return (Fault(place, f"is {value!r}", "a role's name in small letters, digits and _, other than none"),)


def login_faults(role: object, login: object) -> tuple[Fault, ...]:
    """Demand a login's name, or none; and not a role beside it."""
    faults = role_faults("login", login)
    if not faults and login is not None and role is not None:
        return (Fault("login", "is given beside a role", "one of both: a login has its own rights"),)
    return faults


def handler_faults(place: str, handler: object, mode: str = "") -> tuple[Fault, ...]:
    """Demand a function of one argument, the call of `mode` (PerAccount, …; '' for any), or ``"module:function"``."""
    if isinstance(handler, str):
        if _REFERENCE.fullmatch(handler):
            return ()
        return (Fault(place, f"is {handler!r}", '"package.module:function", or the function itself'),)
    if handler is UNDECIDED or not callable(handler):
        told = "is left out" if handler is UNDECIDED else f"is {handler!r}"
        return (Fault(place, told, 'a function of one argument, or "package.module:function"'),)
    try:
        signature = inspect.signature(handler)
        signature.bind(object())
    except (TypeError, ValueError) as error:
        told = f"{function_name(handler)} cannot be called with one argument: {error}"
        return (Fault(place, told, "a function of one argument, the call"),)
    return _call_faults(place, handler, next(iter(signature.parameters.values())).annotation, mode)


def _call_faults(place: str, handler: object, annotation: object, mode: str) -> tuple[Fault, ...]:
    """Refuse a handler that says that it takes the call of another mode."""
    written = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    taken = written.strip("'\" ").rpartition(".")[2]
    if not mode or _MODES.get(taken, mode) == mode:
        return ()
    calls = " or ".join(call for call, of in _MODES.items() if of == mode)
    told = f"{function_name(handler)} takes a {taken}, and {mode} gives it {calls}"
    return (Fault(place, told, f"{_MODES[taken]}(…), or a function that takes {calls}"),)


def function_name(function: object) -> str:
    """Give ``module:function``, whichever kind of callable it is; never an address, which differs in every process."""
    while isinstance(function, functools.partial):
        function = function.func
    named: Any = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def duration_text(duration: timedelta) -> str:
    """Write a duration as the settings are written: `500ms`, `30s`, `90m`, `3h`; in the largest unit that fits."""
    milliseconds = round(duration.total_seconds() * 1000)
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds % size == 0 and (milliseconds or unit == "s"):
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def _shown(value: object) -> str:
    return duration_text(value) if isinstance(value, timedelta) else repr(value)


def common_faults(handler: Any) -> tuple[Fault, ...]:
    """Check what handlers of every mode have: the function, its timeout, and how many run at once."""
    timeout = handler.timeout
    faults = (
        *handler_faults("handler", handler.handler, type(handler).__name__),
        *duration_faults("timeout", timeout, minimum=timedelta(milliseconds=1)),
        *number_faults("concurrency", handler.concurrency, 1, MAXIMUM_CONCURRENCY, whole=True),
    )
    # The broker takes a message back from a consumer that has not acknowledged it for 30 minutes.
    if isinstance(timeout, timedelta) and timeout > LONGEST_TIMEOUT:
        longest = f"at most {duration_text(LONGEST_TIMEOUT)}, well inside the broker's ack timeout"
        faults += (Fault("timeout", f"is {duration_text(timeout)}", longest),)
    return faults
