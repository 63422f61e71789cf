"""Other releases for a test: the next one, a message and a schema version apart; and an earlier one, as it was."""

import shutil
import tarfile
from pathlib import Path

from shared.migrate import migrations
from tests.support.processes import ROOT

PACKAGES = ("schemas", "shared", "trigger", "worker", "examples")
BEFORE = ROOT / "tests" / "releases" / "schema_0008.tar.xz"
FIELD = "    isolated: bool = False\n"


def next_release(folder: Path) -> Path:
    """Copy the product, with a field more in its messages under a version of its own, and a column more in a table.

    The new release writes the column, so it cannot run on this release's schema.
    """
    root = folder / "next"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    replace(
        root / "schemas" / "message.py",
        ("MESSAGE_VERSION = 1\n", "MESSAGE_VERSION = 2\n"),
        ("FIRST_IN: Final[Mapping[str, int]] = {}", 'FIRST_IN: Final[Mapping[str, int]] = {"colour": 2}'),
        (FIELD, f'{FIELD}    colour: str = "blue"\n'),
    )
    replace(root / "shared" / "version.py", ("VERSION = ", 'VERSION = "next" or '))
    replace(
        root / "shared" / "sql" / "stop_instance.sql",
        ("set stopped_at", "set farewell = 'goodbye', stopped_at"),
    )
    number = len(migrations()) + 1
    (root / "schemas" / "migrations" / f"{number:04d}_farewell.sql").write_text(
        "-- Expand: the release before doesn't know of it.\nalter table matins.instance add column farewell text;\n"
    )
    replace(root / "schemas" / "privileges.py", ("seen_at stopped_at beats", "seen_at stopped_at beats farewell"))
    return root


def replace(path: Path, *changes: tuple[str, str]) -> None:
    """Change a text; what is to be changed must be there."""
    text = path.read_text()
    for old, new in changes:
        assert old in text, (path, old)
        text = text.replace(old, new)
    path.write_text(text)


def release_before(folder: Path) -> Path:
    """Unpack the product as it was when the schema ended with migration 0008.

    It is kept beside the tests, since a clone need not have the history: `git archive COMMIT schemas shared trigger
    worker | xz`. Replace it with the last release once there is one.
    """
    root = folder / "before"
    with tarfile.open(BEFORE) as archive:
        archive.extractall(root, filter="data")
    return root
