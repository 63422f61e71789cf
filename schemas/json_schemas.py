"""The contracts as JSON Schema 2020-12, for readers in other languages; a test compares the files in `published`."""

from typing import Any

import msgspec

from schemas.message import MESSAGE_VERSION, WorkMessage
from schemas.report import REPORT_VERSION, Report


def json_schemas() -> dict[str, dict[str, Any]]:
    """Give each published file's name and its content."""
    contracts = (
        ("work-message", MESSAGE_VERSION, WorkMessage),
        ("report", REPORT_VERSION, Report),
    )
    return {f"{name}.v{version}.json": _schema(f"{name}.v{version}", kind) for name, version, kind in contracts}


def _schema(name: str, kind: type[msgspec.Struct]) -> dict[str, Any]:
    (root,), components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    described = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:matins:{name}",
        **root,
        "$defs": components,
    }
    # Defaults are tuples here, and arrays in JSON.
    schema: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(described))
    return schema
