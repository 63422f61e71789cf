"""The description of the JSON in OpenAPI 3.1, made of the table that it is answered by. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from trigger.api_answers import JSON, PROBLEM
from trigger.console.api import shapes_fleet, shapes_runs, shapes_trail
from trigger.console.api.answers import TITLES
from trigger.console.api.fields import Schema, component, example_of, record, text, whole
from trigger.console.api.route import Read
from trigger.console.ways import PREFIX

Described = dict[str, Any]
VERSION: Final = "1"
_PROBLEM: Final = record(
    "Why there is nothing, as RFC 9457 has it.", type=text("about:blank"), title=text(TITLES[404]), status=whole(404)
)
SHAPES: Final[dict[str, Schema]] = {
    **shapes_fleet.SHAPES,
    **shapes_runs.SHAPES,
    **shapes_trail.SHAPES,
    "Problem": {**_PROBLEM, "properties": {**_PROBLEM["properties"], "detail": text("the place, and what is valid")}},
}
_SCHEMES: Final[Described] = {
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "__Host-matins",
        "description": "The cookie of somebody who signed in to the console; `matins` where that is not over TLS.",
    },
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of `[tokens.NAME]` in MATINS_CONSOLE_ACCESS, of the role read or operate.",
    },
}
_TOLD: Final = (
    "The values beneath the console's pages, which are those of the commands with `--json`. Instants are RFC 3339 in "
    "UTC; durations are seconds. An answer with `Age` was read so many seconds ago for all who ask. Names that are not "
    "described are refused behind the question mark. A later release may add fields and words; none of these goes away "
    "under /api/v1. HEAD is answered as GET without a body; any other method that a path does not have with 405 and "
    "`Allow`. While nobody can sign in (MATINS_CONSOLE_ACCESS is not set), anybody on the loopback reads, and "
    "nobody acts."
)
_LICENSE: Final = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
# Beside those of its own, what any question may be answered with.
_ALWAYS: Final = (400, 401, 403, 429, 503)


def description(reads: Sequence[Read]) -> Described:
    """Describe what is answered."""
    paths: dict[str, Described] = {}
    for one in reads:
        paths.setdefault(PREFIX + one.path, {})["get"] = _question(one)
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {"title": "Matins console", "version": VERSION, "description": _TOLD, "license": _LICENSE},
        "servers": [{"url": "/", "description": "The console that serves this description."}],
        "security": [{"session": []}, {"token": []}, {}],
        "paths": paths,
        "components": {"schemas": SHAPES, "securitySchemes": _SCHEMES, "responses": _problems()},
    }


def _question(one: Read) -> Described:
    statuses = sorted({*_ALWAYS, *((404,) if _may_be_missing(one) else ())})
    return {
        "operationId": one.name,
        "summary": one.told,
        "parameters": [parameter.described() for parameter in one.parameters],
        "responses": {"200": _answer(one), **_refusals(statuses)},
    }


def _may_be_missing(one: Read) -> bool:
    return any(parameter.place == "path" or parameter.name == "job" for parameter in one.parameters)


def _answer(one: Read) -> Described:
    content = {"schema": one.gives, "example": example_of(one.gives, SHAPES)}
    headers = {"Cache-Control": _header({"type": "string", "const": "no-store"}, "It is never kept between.")}
    if one.kept:
        headers["Age"] = _header({"type": "integer", "minimum": 0}, "How many seconds ago it was read.")
    return {"description": one.told, "headers": headers, "content": {JSON: content}}


def _header(schema: Mapping[str, Any], told: str) -> Described:
    return {"description": told, "required": True, "schema": schema}


def _refusals(statuses: Sequence[int]) -> Described:
    return {str(status): {"$ref": f"#/components/responses/Problem{status}"} for status in statuses}


def _problems() -> Described:
    return {f"Problem{status}": _problem(status) for status in TITLES if status not in {405, 421, 500}}


def _problem(status: int) -> Described:
    example = {"type": "about:blank", "title": TITLES[status], "status": status}
    described: Described = {
        "description": TITLES[status],
        "content": {PROBLEM: {"schema": component("Problem"), "example": example}},
    }
    if status == 401:  # noqa: PLR2004 - such an answer names a way in
        described["headers"] = {"WWW-Authenticate": _header({"type": "string"}, "How to prove who asks.")}
    if status in {429, 503}:
        described["headers"] = {"Retry-After": _header({"type": "integer", "minimum": 1}, "Seconds to wait.")}
    return described
