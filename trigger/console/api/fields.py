"""The words in which answers are described: JSON Schema 2020-12, each field with an example. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

Schema = dict[str, Any]
COMPONENTS: Final = "#/components/schemas/"
WHEN: Final = "2026-08-25T02:00:00Z"


def text(example: str = "", **more: Any) -> Schema:
    """Describe a text."""
    return {"type": "string", **more, "examples": [example]}


def whole(example: int = 0, **more: Any) -> Schema:
    """Describe a whole number."""
    return {"type": "integer", **more, "examples": [example]}


def number(example: float = 0.0, **more: Any) -> Schema:
    """Describe a number; durations are seconds."""
    return {"type": "number", **more, "examples": [example]}


def flag(*, example: bool = False) -> Schema:
    """Describe a yes or no."""
    return {"type": "boolean", "examples": [example]}


def instant(example: str = WHEN) -> Schema:
    """Describe an instant: RFC 3339, in UTC."""
    return {"type": "string", "format": "date-time", "examples": [example]}


def one_of(words: Sequence[str], example: str) -> Schema:
    """Describe a word of several."""
    return {"type": "string", "enum": list(words), "examples": [example]}


def anything(described: str) -> Schema:
    """Describe an object whose names differ from one to the next."""
    return {"type": "object", "description": described, "examples": [{}]}


def many(items: Schema, **more: Any) -> Schema:
    """Describe a list."""
    return {"type": "array", "items": items, **more}


def maybe(schema: Schema, *, example: bool = False) -> Schema:
    """Describe what may be null, as it is in examples unless `example` has it there."""
    kept = {} if example else {"examples": [None]}
    if "$ref" in schema or "enum" in schema:
        return {"anyOf": [schema, {"type": "null"}], **kept}
    return {**schema, "type": [schema["type"], "null"], **kept}


def record(described: str, /, **fields: Schema) -> Schema:
    """Describe an object that always has these fields; a later release may add others."""
    return {"type": "object", "description": described, "properties": fields, "required": list(fields)}


def component(name: str) -> Schema:
    """Name a schema of the description."""
    return {"$ref": f"{COMPONENTS}{name}"}


def example_of(schema: Mapping[str, Any], components: Mapping[str, Schema]) -> Any:
    """Make an example of what a schema describes, from those of its fields."""
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return example_of(components[schema["$ref"].removeprefix(COMPONENTS)], components)
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], components)
    if "items" in schema:
        return [example_of(schema["items"], components)]
    return {name: example_of(one, components) for name, one in schema.get("properties", {}).items()}
