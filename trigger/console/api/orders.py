"""An act as JSON: what its body may hold, and the same as the form that the act reads. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from shared.terminal import LONGEST_REASON
from trigger.backfill_choice import MOST_ACTIVE
from trigger.console.acts import REASON, Act, Field
from trigger.console.acts_occurrences import MOST_ACCOUNTS
from trigger.console.api.fields import WHEN, Schema
from trigger.console.asking import Unanswerable
from trigger.console.forms import Form

DRY_RUN: Final = "dry_run"
INSTANTS: Final = frozenset({"at", "from", "since", "until"})
_WITHOUT_NUL: Final = "^[^\\u0000]*$"
_ACCOUNT: Final = {"type": "string", "minLength": 1, "pattern": "^[^\\u0000\\r\\n]*$"}
_REASON: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_REASON,
    "pattern": _WITHOUT_NUL,
    "description": "Why; kept for good in the audit trail.",
}
_TEXTS: Final[Mapping[str, Schema]] = {
    "for": {"type": "string", "pattern": "^[1-9][0-9]{0,5}[mhd]$", "examples": ["2h"]},
}
_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    "text": (str, "a text"),
    "one of": (str, "a text"),
    "lines": (list, f"a list of at most {MOST_ACCOUNTS} texts, each one line"),
    "yes": (bool, "true or false"),
    "number": (int, f"a whole number from 1 to {MOST_ACTIVE}"),
}


@dataclass(frozen=True, slots=True)
class Ordered:
    """What somebody has ordered: the form of it, why, and whether they only ask what would be done."""

    form: Form
    reason: str
    dry_run: bool


def named(option: str) -> str:
    """Give the name in a body of an option of the command line."""
    return option.replace("-", "_")


def body_of(act: Act) -> Schema:
    """Describe the body."""
    properties = {REASON.name: _REASON} | {named(one.name): _described(one) for one in act.fields}
    if act.ask is not None:
        told = "Say what would be done; change nothing."
        properties[DRY_RUN] = {"type": "boolean", "default": False, "description": told}
    required = [REASON.name, *(named(one.name) for one in act.fields if one.needed)]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def example_body(act: Act) -> dict[str, Any]:
    """Give a body that could be sent."""
    needed = {named(one.name): WHEN for one in act.fields if one.needed}
    lasts = {"for": "2h"} if any(one.name == "for" for one in act.fields) else {}
    return {REASON.name: "the provider is back", **needed, **lasts}


def read_order(act: Act, body: bytes) -> Ordered:
    """Read a body. Raises Unanswerable, which names the place and what is valid."""
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        raise Unanswerable('the body is a JSON object, as {"reason": "the provider is back"}')
    valid = body_of(act)
    if unknown := sorted(given.keys() - valid["properties"].keys()):
        raise Unanswerable(f"{unknown[0][:40]!r} is unknown; valid are {', '.join(valid['properties'])}")
    for name in valid["required"]:
        if name not in given:
            raise Unanswerable(f"{name} is missing")
    fields = {one.name: _texts(one, given[named(one.name)]) for one in act.fields if named(one.name) in given}
    dry_run = given.get(DRY_RUN, False)
    if not isinstance(dry_run, bool):
        raise Unanswerable(f"{DRY_RUN}: valid is true or false")
    return Ordered(Form(fields), _text(REASON.name, given[REASON.name], LONGEST_REASON), dry_run)


def _texts(field: Field, value: Any) -> tuple[str, ...]:
    """Give a value as the form has it."""
    kind, valid = _KINDS[field.kind]
    name, given = named(field.name), type(value)
    if given is not kind:
        raise Unanswerable(f"{name}: valid is {valid}")
    match field.kind:
        case "yes":
            return ("yes",) if value else ()
        case "number":
            return (_number(name, value),)
        case "lines":
            return _lines(name, value)
        case "one of":
            words = [word for word, _ in field.valid]
            if value not in words:
                raise Unanswerable(f"{name}: {value[:40]!r} is unknown; valid are {', '.join(words)}")
    return (_text(name, value, LONGEST_REASON),)


def _text(name: str, value: Any, longest: int) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= longest or "\0" in value:
        raise Unanswerable(f"{name}: valid is a text of 1 to {longest} characters")
    return value


def _number(name: str, value: int) -> str:
    if not 1 <= value <= MOST_ACTIVE:
        raise Unanswerable(f"{name}: {value} is none; valid is {_KINDS['number'][1]}")
    return str(value)


def _lines(name: str, value: list[Any]) -> tuple[str, ...]:
    fits = all(isinstance(one, str) and one and not {"\0", "\r", "\n"} & set(one) for one in value)
    if not fits or len(value) > MOST_ACCOUNTS:
        raise Unanswerable(f"{name}: valid is {_KINDS['lines'][1]}")
    return tuple(value)


def _described(field: Field) -> Schema:
    told = {"description": ": ".join(one for one in (field.label, field.hint) if one)}
    match field.kind:
        case "yes":
            return {"type": "boolean", "default": False, **told}
        case "number":
            return {"type": "integer", "minimum": 1, "maximum": MOST_ACTIVE, "default": int(field.usual), **told}
        case "lines":
            return {"type": "array", "items": _ACCOUNT, "maxItems": MOST_ACCOUNTS, **told}
        case "one of":
            meant = "; ".join(f"{word}: {label}" for word, label in field.valid)
            words = {"type": "string", "enum": [word for word, _ in field.valid], "default": field.usual}
            return {**words, "description": f"{field.label}. {meant}"}
    if field.name in INSTANTS:
        return {"type": "string", "format": "date-time", "minLength": 1, **told}
    return {**_TEXTS[field.name], **told}
