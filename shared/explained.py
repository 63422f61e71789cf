"""Mistakes in a declaration's arguments, told as faults with their places where Python would raise a bare TypeError."""

import functools
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from shared.declaration import Fault, collecting_faults, refuse

_Declared = TypeVar("_Declared")


class _Undecided:
    """Stands for a required value that the author left out."""

    def __repr__(self) -> str:
        return "left out"


UNDECIDED: Final = _Undecided()


def explain_mistakes(declared: type[_Declared]) -> type[_Declared]:
    """Let a dataclass tell unexpected arguments as faults; one left out becomes UNDECIDED, for its own checks to tell.

    The class keeps its faults in a field `faults`, as `shared.declaration.keep_faults` does; they stand in its `place`,
    if it has one.
    """
    generated = declared.__init__

    @functools.wraps(generated)
    def initialise(self: Any, *args: Any, **values: Any) -> None:
        own = [field for field in fields(self) if field.init]
        by_place = [field for field in own if not field.kw_only]
        given = {field.name: value for field, value in zip(by_place, args, strict=False)}
        wrong = _surplus(args, by_place) + _unexpected(values, own, given)
        values = {field.name: values[field.name] for field in own if field.name in values} | given
        for field in own:
            if field.name not in values and field.default is MISSING and field.default_factory is MISSING:
                values[field.name] = UNDECIDED
        if not wrong:
            generated(self, **values)
            return
        with collecting_faults():
            generated(self, **values)
        if place := getattr(self, "place", ""):
            wrong = tuple(fault.within(place) for fault in wrong)
        object.__setattr__(self, "faults", wrong + self.faults)
        refuse(self.faults)

    declared.__init__ = initialise  # type: ignore[method-assign]  # the same parameters, by functools.wraps
    return declared


def undecided_names(declared: Any) -> tuple[str, ...]:
    """Name the fields that the author left out."""
    return tuple(field.name for field in fields(declared) if field.init and getattr(declared, field.name) is UNDECIDED)


def left_out_faults(declared: Any, examples: Mapping[str, str]) -> tuple[Fault, ...]:
    """Give a fault for each of the named fields that the author left out, with an example of a right value."""
    missing = undecided_names(declared)
    return tuple(Fault(name, "is left out", valid) for name, valid in examples.items() if name in missing)


def _surplus(args: tuple[Any, ...], by_place: list[Field[Any]]) -> tuple[Fault, ...]:
    if len(args) <= len(by_place):
        return ()
    names = ", ".join(field.name for field in by_place) or "none: name each"
    return (Fault("arguments", f"{len(args)} are given without a name", names),)


def _unexpected(values: dict[str, Any], own: list[Field[Any]], given: dict[str, Any]) -> tuple[Fault, ...]:
    names = [field.name for field in own]
    faults = [Fault(name, "is given twice", "once") for name in values if name in given]
    for name in values:
        if name not in names:
            near = get_close_matches(name, names, 2, 0.6)
            faults.append(Fault(name, "is not known", " | ".join(near or names)))
    return tuple(faults)
