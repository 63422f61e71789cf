"""Our packages' names are other people's names too: a process that would import somebody else's refuses to start."""

import sys
from collections.abc import Iterable
from pathlib import Path

from shared.errors import MatinsError

OURS = ("schemas", "shared", "trigger", "worker")


class AmbiguousPackage(MatinsError):
    """A package of ours exists twice on the import path, and either could be the one that is imported."""


def check_packages(path: Iterable[str] | None = None, names: Iterable[str] = OURS) -> None:
    """Look for every module or package named as one of ours on `path` (by default the import path).

    Raises AmbiguousPackage naming both places.
    """
    own = Path(__file__).resolve().parent.parent
    problems = []
    for entry in dict.fromkeys(Path(one or ".").resolve() for one in (sys.path if path is None else path)):
        if entry == own:
            continue
        problems += [
            f"{found} and {own / name} are both named `{name}`: rename yours, or take its folder off the import path"
            for name in names
            if (own / name).is_dir()
            for found in (entry / name, entry / f"{name}.py")
            if (found.is_dir() and any(found.iterdir())) or found.is_file()
        ]
    if problems:
        raise AmbiguousPackage("\n".join(problems))
