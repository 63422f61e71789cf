"""The programs of a server: this machine's own, those of an unpacked download, or a whole unpacked system.

The last is for versions that this machine's distribution doesn't have: `python -m examples.servers unpack` makes one.
Its programs need its own libraries, so they are started inside it, by an ordinary user, in a namespace where that user
may do so; the server's folder is mounted there on /mnt.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from examples.servers.server import ServerUnavailableError

BROKER_SERVER_VARIABLE = "MATINS_TEST_BROKER_SERVER"
DATABASE_SERVER_VARIABLE = "MATINS_TEST_DATABASE_SERVER"
PLACE = Path("/mnt")
ENTER = (
    'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --bind "$1" "$0/mnt" && shift '
    '&& exec chroot "$0" /bin/sh -c \'cd /mnt && exec "$0" "$@"\' "$@"'
)


@dataclass(frozen=True)
class Programs:
    """A folder of programs; with `system`, a path inside of that unpacked system."""

    folder: Path
    system: Path | None = None

    def seen(self, path: Path, state: Path) -> Path:
        """Give the name by which the programs know a path in the server's folder `state`."""
        return path if self.system is None else PLACE / path.relative_to(state)

    def command(self, state: Path, program: str, *arguments: str) -> list[str]:
        """Give the command that runs a program, named by itself or by its whole path, on the folder `state`."""
        called = [str(self.folder / program), *arguments]
        if self.system is None:
            return called
        unshared = ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount"]
        return [*unshared, "sh", "-c", ENTER, str(self.system), str(state), *called]


def chosen(variable: str, environment: Mapping[str, str] = os.environ) -> Path | str | None:
    """Give what the environment chooses to serve: a folder, the name of an image, or nothing."""
    text = environment.get(variable)
    if not text:
        return None
    path = Path(text)
    return path.absolute() if path.is_absolute() or path.is_dir() else text


def programs_in(folder: Path, variable: str, program: str, places: str) -> Programs:
    """Find a program in a chosen folder: an unpacked system that has it at `places`, a glob, or an unpacked download.

    Raises ServerUnavailableError.
    """
    # A system first: what lies in its /usr/sbin are wrappers that would start this machine's own.
    if found := sorted(folder.glob(f"{places}/{program}")):
        return Programs(Path("/") / found[-1].parent.relative_to(folder), folder)
    for below in ("sbin", "bin"):
        if (folder / below / program).is_file():
            return Programs(folder / below)
    problem = f"{variable}: {folder} holds no {program}, neither in its sbin or bin nor at {places}"
    raise ServerUnavailableError(problem)
