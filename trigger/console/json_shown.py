"""Showing what somebody has put into JSON: a word for what is one, and for the rest the JSON itself, a line each."""

from collections.abc import Mapping
from typing import Any, Final

import orjson
from markupsafe import Markup

from shared.masking import plain

LONGEST_JSON: Final = 20_000
LONGEST_WORD: Final = 500
_WRITTEN: Final = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS


def shown(value: object, limit: int = LONGEST_WORD) -> Markup:
    """Show a value: text as text, a number as it is, anything larger as JSON."""
    if value is None or value in ("", {}, []):
        return Markup("-")
    if isinstance(value, (dict, list)):
        return Markup('<pre dir="auto">{}</pre>').format(written(value))
    word = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    return Markup("<bdi>{}</bdi>").format(plain(word, limit))


def written(value: object, limit: int = LONGEST_JSON) -> str:
    """Write a value as indented JSON, its keys in order, cut with a word."""
    return plain(orjson.dumps(value, default=str, option=_WRITTEN).decode(), limit)


def changed(before: object, after: object) -> list[tuple[str, Any, Any]]:
    """Give what differs between two documents, a name with both values each; nothing where they are no documents."""
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return []
    names = dict.fromkeys([*before, *after])
    return [(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)]
