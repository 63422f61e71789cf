"""Writes the published JSON Schemas and the console's OpenAPI anew: `make schemas`, after a change that is meant."""

import json
from pathlib import Path
from typing import Any

import schemas
from schemas.json_schemas import json_schemas
from trigger.console.api.table import DESCRIPTION

PUBLISHED = Path(schemas.__file__).parent / "published"
CONSOLE = "console.v1.openapi.json"


def published() -> dict[str, Any]:
    """Give each published file's name and its content."""
    content: dict[str, Any] = json.loads(json.dumps(DESCRIPTION))
    return json_schemas() | {CONSOLE: content}


def main() -> None:
    """Write every file."""
    for name, content in published().items():
        (PUBLISHED / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
