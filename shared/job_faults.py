"""The checks on a declaration's values, each giving the faults that it finds."""

import functools
import inspect
import re
from collections.abc import Iterable
from dataclasses import MISSING, fields
from datetime import timedelta
from typing import Any, Final, TypeVar

from shared.declaration import Fault

_Declared = TypeVar("_Declared")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)
_ROLE = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


class _Undecided:
    """Stands for a required value that the author left out."""

    def __repr__(self) -> str:
        return "left out"


UNDECIDED: Final = _Undecided()


def explain_missing(declared: type[_Declared]) -> type[_Declared]:
    """Let a declaration's own checks speak of a missing argument, where Python would raise a bare TypeError."""
    generated = declared.__init__

    @functools.wraps(generated)
    def initialise(self: Any, *args: Any, **values: Any) -> None:
        given = {field.name for field, _ in zip(fields(self), args, strict=False)} | set(values)
        for field in fields(self):
            if field.init and field.name not in given and field.default is MISSING and field.default_factory is MISSING:
                values[field.name] = UNDECIDED
        generated(self, *args, **values)

    declared.__init__ = initialise  # type: ignore[method-assign]  # the same parameters, by functools.wraps
    return declared


def undecided_names(declared: Any) -> tuple[str, ...]:
    """Name the fields that the author left out."""
    return tuple(field.name for field in fields(declared) if getattr(declared, field.name) is UNDECIDED)


def duration_faults(place: str, value: object, *, minimum: timedelta = timedelta(0)) -> tuple[Fault, ...]:
    """Demand a timedelta of at least `minimum`."""
    if value is UNDECIDED or (isinstance(value, timedelta) and value >= minimum):
        return ()
    return (
        Fault(place, f"is {value!r}", f"a duration of at least {minimum}, as seconds(30), minutes(10) or hours(3)"),
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
    """Demand a database role's name, or none."""
    if value is None or (isinstance(value, str) and _ROLE.fullmatch(value)):
        return ()
    return (Fault(place, f"is {value!r}", "a role's name in small letters, digits and _"),)


def handler_faults(place: str, handler: object) -> tuple[Fault, ...]:
    """Demand a function of one argument, or ``"package.module:function"``."""
    if isinstance(handler, str):
        if _REFERENCE.fullmatch(handler):
            return ()
        return (Fault(place, f"is {handler!r}", '"package.module:function", or the function itself'),)
    if not callable(handler):
        return (Fault(place, f"is {handler!r}", 'a function of one argument, or "package.module:function"'),)
    try:
        inspect.signature(handler).bind(object())
    except (TypeError, ValueError) as error:
        return (Fault(place, f"cannot be called with one argument: {error}", "a function of one argument, the call"),)
    return ()
