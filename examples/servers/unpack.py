"""Unpack a server of another release of Debian, with all that it needs, into a folder: nothing is installed.

No rights are needed, only `apt-get` and `dpkg-deb`, so on Debian and its kin. apt-get works on a state of its own in
which no package is installed, and so fetches every dependency, those too that every Debian has anyway.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from examples.servers.server import ServerUnavailableError

SUITES: Final = ("trixie", "testing", "sid")
PACKAGES: Final = ("postgresql", "rabbitmq-server")
# Essential packages are nobody's dependency.
ESSENTIAL: Final = ("bash", "coreutils", "dash", "findutils", "grep", "mawk", "sed")
SOURCES: Final = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d"))
MIRROR: Final = re.compile(r"^(?:URIs:|deb(?: \[.*?\])?) *(\S+/debian)/?(?: |$)", re.MULTILINE)
KEYS: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
USERS: Final = "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
HOSTS: Final = "127.0.0.1 localhost\n::1 localhost\n"


def unpack(suite: str, package: str, folder: Path) -> None:
    """Fetch a package of a release and unpack it, with all that it needs; raises ServerUnavailableError."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise ServerUnavailableError("There is no apt-get or no dpkg-deb on this machine.")
    if folder.exists() and any(folder.iterdir()):
        raise ServerUnavailableError(f"{folder} is not empty.")
    folder.mkdir(parents=True, exist_ok=True)
    with private_apt(suite) as (options, archives):
        run(["apt-get", *options, "update"])
        run(["apt-get", *options, "install", "--yes", "--download-only", package, *ESSENTIAL])
        for archive in sorted(archives.glob("*.deb")):
            run(["dpkg-deb", "--extract", str(archive), str(folder)])
    for name, target in (("sh", "dash"), ("awk", "mawk")):
        link = folder / "usr/bin" / name
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    for name in ("dev", "mnt", "proc", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "etc/passwd").write_text(USERS)
    (folder / "etc/hosts").write_text(HOSTS)


@contextmanager
def private_apt(suite: str) -> Iterator[tuple[list[str], Path]]:
    """Have a state of apt's own meanwhile; give its options, and the folder where the packages will lie."""
    with tempfile.TemporaryDirectory(prefix="matins-apt-") as name:
        place = Path(name)
        archives = place / "cache/archives"
        for folder in (archives / "partial", place / "state/lists/partial"):
            folder.mkdir(parents=True)
        status, sources = place / "status", place / "sources.list"
        status.touch()
        sources.write_text(f"deb [signed-by={KEYS}] {mirror()} {suite} main\n")
        values = {
            "Dir::State": place / "state",
            "Dir::State::status": status,
            "Dir::Cache": place / "cache",
            "Dir::Etc::SourceList": sources,
            "Dir::Etc::SourceParts": "/dev/null",
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root",
            # A mirror that stands still for a while serves an index of testing that has run out.
            "Acquire::Check-Valid-Until": "false",
            "Debug::NoLocking": "true",
        }
        yield [part for option, value in values.items() for part in ("-o", f"{option}={value}")], archives


def mirror() -> str:
    """Give the mirror of Debian that this machine uses; raises ServerUnavailableError."""
    files = [path for source in SOURCES for path in ([source] if source.is_file() else sorted(source.glob("*.*")))]
    for path in files:
        if found := MIRROR.search(path.read_text()):
            return found[1]
    raise ServerUnavailableError("This machine's sources of packages name no mirror of Debian.")


def run(command: Sequence[str]) -> None:
    """Run a program to its end; raises ServerUnavailableError with what it said."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServerUnavailableError(f"{' '.join(command[:1])} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
