"""Writes the published JSON Schemas anew: `make schemas`, after a contract has changed on purpose."""

import json
from pathlib import Path

import schemas
from schemas.json_schemas import json_schemas

PUBLISHED = Path(schemas.__file__).parent / "published"


def main() -> None:
    """Write every file."""
    for name, content in json_schemas().items():
        (PUBLISHED / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
