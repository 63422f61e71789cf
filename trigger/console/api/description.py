"""The description of the JSON in OpenAPI 3.1, made of the table that it is answered by. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from trigger.api_answers import JSON, PROBLEM
from trigger.console.acts import Act
from trigger.console.api import shapes_fleet, shapes_runs, shapes_trail
from trigger.console.api.answers import TITLES
from trigger.console.api.fields import Schema, component, example_of, flag, many, record, text, whole
from trigger.console.api.orders import body_of, example_body
from trigger.console.api.parameters import Parameter
from trigger.console.api.route import Read
from trigger.console.ways import PREFIX

Described = dict[str, Any]
VERSION: Final = "1"
_PROBLEM: Final = record(
    "Why there is nothing, as RFC 9457 has it.", type=text("about:blank"), title=text(TITLES[404]), status=whole(404)
)
_DONE: Final = record(
    "What became of an order: what is told of it, a line each. With `dry_run` nothing is done, and `rows` under their "
    "`headings` show what would be.",
    done=flag(example=True),
    told=many(text("invoice-run is resumed")),
    headings=many(text("Instant")),
    rows=many(many(text("2026-08-25T02:00Z"))),
)
SHAPES: Final[dict[str, Schema]] = {
    **shapes_fleet.SHAPES,
    **shapes_runs.SHAPES,
    **shapes_trail.SHAPES,
    "Done": _DONE,
    "Problem": {**_PROBLEM, "properties": {**_PROBLEM["properties"], "detail": text("the place, and what is valid")}},
}
_SCHEMES: Final[Described] = {
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "__Host-matins",
        "description": "The cookie of somebody who signed in to the console; `matins` where that is not over TLS.",
    },
    "word": {
        "type": "apiKey",
        "in": "header",
        "name": "X-CSRF-Token",
        "description": "A word of the session, as /api/v1/person gives it: who acts sends it beside the cookie.",
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
    "`Allow`. An act is done in the name of who sends it. While nobody can sign in (MATINS_CONSOLE_ACCESS is not set), "
    "anybody on the loopback reads, and nobody acts."
)
_LICENSE: Final = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
# Beside those of its own, what any question may be answered with.
_ALWAYS: Final = (400, 401, 403, 429, 503)


def description(reads: Sequence[Read], acts: Sequence[Act], subjects: Mapping[str, Parameter]) -> Described:
    """Describe what is answered, and what is done; `subjects` are what the paths of acts name."""
    paths: dict[str, Described] = {}
    for one in reads:
        paths.setdefault(PREFIX + one.path, {})["get"] = _question(one)
    for act in acts:
        paths.setdefault(PREFIX + act.path, {})["post"] = _act(act, subjects)
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


def _act(act: Act, subjects: Mapping[str, Parameter]) -> Described:
    parts = [part for part in act.path.split("/") if part]
    content = {"schema": body_of(act), "example": example_body(act)}
    done = component("Done")
    return {
        "operationId": "_".join(["do", *(part.replace("-", "_") for part in parts if "{" not in part)]),
        "summary": f"{act.label}. {act.explained}",
        "security": [{"session": [], "word": []}, {"token": []}],
        "parameters": [subjects[part[1:-1]].described() for part in parts if "{" in part],
        "requestBody": {"required": True, "content": {JSON: content}},
        "responses": {
            "200": {
                "description": "It is done, or with `dry_run` what would be.",
                "headers": dict(_NEVER_KEPT),
                "content": {JSON: {"schema": done, "example": example_of(done, SHAPES)}},
            },
            **_refusals((400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503)),
        },
    }


def _may_be_missing(one: Read) -> bool:
    return any(parameter.place == "path" or parameter.name == "job" for parameter in one.parameters)


def _answer(one: Read) -> Described:
    content = {"schema": one.gives, "example": example_of(one.gives, SHAPES)}
    headers = dict(_NEVER_KEPT)
    if one.kept:
        headers["Age"] = _header({"type": "integer", "minimum": 0}, "How many seconds ago it was read.")
    return {"description": one.told, "headers": headers, "content": {JSON: content}}


def _header(schema: Mapping[str, Any], told: str) -> Described:
    return {"description": told, "required": True, "schema": schema}


_NEVER_KEPT: Final = {"Cache-Control": _header({"type": "string", "const": "no-store"}, "It is never kept between.")}


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
