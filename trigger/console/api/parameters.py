"""What a question may have in its path and behind its question mark: how it is described, and how it is read. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from schemas.occurrence import parse_identity
from shared.terminal import Refused, read_instant
from trigger.console.api.fields import WHEN, Schema
from trigger.console.asking import Unanswerable

MOST_GIVEN: Final = 50
LONGEST_TEXT: Final = 200
_WHOLE: Final = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)
# No database stores it.
_WITHOUT_NUL: Final = "^[^\\u0000]*$"

Take = Callable[[str, str], Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `take` reads its text, given its name too, and raises Unanswerable.

    Without a text it is `default`. One of `many` may be repeated, and is read as a list.
    """

    name: str
    told: str
    schema: Schema
    example: Any
    take: Take
    default: Any = None
    many: bool = False
    place: Literal["path", "query"] = "query"

    def described(self) -> dict[str, Any]:
        """Give what the description says of it."""
        schema = {"type": "array", "items": self.schema, "maxItems": MOST_GIVEN} if self.many else self.schema
        if self.default is not None:
            schema = {**schema, "default": self.default}
        return {
            "name": self.name,
            "in": self.place,
            "required": self.place == "path",
            "description": self.told,
            "schema": schema,
            "example": [self.example] if self.many else self.example,
        }


def in_path(name: str, told: str, example: str, schema: Schema) -> Parameter:
    """Have a name in the path; whoever reads it finds that there is no such thing."""
    return Parameter(name, told, {"type": "string", **schema}, example, _plain, place="path")


def text(name: str, told: str, example: str, *, longest: int = LONGEST_TEXT, many: bool = False) -> Parameter:
    """Have a text of 1 to `longest` characters."""

    def take(where: str, given: str) -> str:
        if not 1 <= len(given) <= longest or "\0" in given:
            raise Unanswerable(f"{where}: valid is a text of 1 to {longest} characters")
        return given

    schema = {"type": "string", "minLength": 1, "maxLength": longest, "pattern": _WITHOUT_NUL}
    return Parameter(name, told, schema, example, take, many=many)


def instant(name: str, told: str) -> Parameter:
    """Have an instant with a zone, as RFC 3339 writes it; it is read in UTC."""

    def take(where: str, given: str) -> datetime:
        try:
            return read_instant(where, given).astimezone(UTC)
        except Refused as error:
            raise Unanswerable(str(error)) from None

    return Parameter(name, told, {"type": "string", "format": "date-time"}, WHEN, take)


def choice(name: str, told: str, valid: Sequence[str], *, many: bool = False) -> Parameter:
    """Have a word of several."""

    def take(where: str, given: str) -> str:
        if given not in valid:
            raise Unanswerable(f"{where}: {given[:40]!r} is unknown; valid are {', '.join(valid)}")
        return given

    return Parameter(name, told, {"type": "string", "enum": list(valid)}, valid[0], take, many=many)


def flag(name: str, told: str) -> Parameter:
    """Have a yes or no, `false` without it."""

    def take(where: str, given: str) -> bool:
        if given not in {"true", "false"}:
            raise Unanswerable(f"{where}: {given[:40]!r} is unknown; valid are true and false")
        return given == "true"

    return Parameter(name, told, {"type": "boolean"}, example=False, take=take, default=False)


def whole(name: str, told: str, least: int, most: int, default: int | None = None) -> Parameter:
    """Have a whole number within bounds."""

    def take(where: str, given: str) -> int:
        if not _WHOLE.fullmatch(given) or not least <= int(given) <= most:
            raise Unanswerable(f"{where}: {given[:20]!r} is none; valid is a whole number from {least} to {most}")
        return int(given)

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Parameter(name, told, schema, default or least, take, default)


def occurrence(name: str, told: str, example: str) -> Parameter:
    """Have an occurrence's written form."""

    def take(where: str, given: str) -> Any:
        try:
            return parse_identity(given)
        except ValueError as error:
            raise Unanswerable(f"{where}: {error}") from None

    return Parameter(name, told, {"type": "string", "format": "occurrence"}, example, take)


def read_query(parameters: Sequence[Parameter], given: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Read what stands behind the question mark. Raises Unanswerable; an unknown name is not ignored."""
    known = {one.name: one for one in parameters if one.place == "query"}
    for name, _ in given:
        if name not in known:
            valid = f"valid are {', '.join(known)}" if known else "nothing is asked here"
            raise Unanswerable(f"{name[:40]!r} is unknown; {valid}")
    return {name: _read(one, [text for given_name, text in given if given_name == name]) for name, one in known.items()}


def _read(parameter: Parameter, texts: Sequence[str]) -> Any:
    most = MOST_GIVEN if parameter.many else 1
    if len(texts) > most:
        raise Unanswerable(f"{parameter.name}: it is given {len(texts)} times; at most {most} are read")
    values = [parameter.take(parameter.name, one) for one in texts]
    if parameter.many:
        return values
    return values[0] if values else parameter.default


def _plain(_where: str, given: str) -> str:
    return given
