"""Install servers from the distribution, where that is possible: as root, on Debian and its kin.

The packages start a server of the system when they are installed. A policy file, there for the length of the
installation only, keeps them from it.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from examples.servers.pgbouncer import find_pgbouncer
from examples.servers.postgres import find_postgres
from examples.servers.rabbit import find_rabbit
from examples.servers.server import ServerUnavailableError

POLICY = Path("/usr/sbin/policy-rc.d")
FAKETIME = "*/faketime/libfaketimeMT.so.1"
LOCK_WAIT = ("-o", "DPkg::Lock::Timeout=300")


def missing_packages() -> list[str]:
    """Give the packages whose programs aren't on this machine."""
    finders = {"postgresql": find_postgres, "rabbitmq-server": find_rabbit, "pgbouncer": find_pgbouncer}
    return [package for package, find in finders.items() if find() is None]


def find_faketime() -> Path | None:
    """Find the library that gives a process another clock, or None."""
    return next(iter(sorted(Path("/usr/lib").glob(FAKETIME))), None)


def find_promtool() -> Path | None:
    """Find the program that judges rules for Prometheus, or None."""
    found = shutil.which("promtool")
    return Path(found) if found else None


def find_nginx() -> Path | None:
    """Find the program of the gateway, or None."""
    found = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    return Path(found) if found else None


def find_chromium() -> Path | None:
    """Find the browser that shows the console's pages, or None."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    return Path(found) if found else None


def packages_of_tests() -> list[str]:
    """Give the packages that only tests need, are missing, and can be installed by this process."""
    found = {
        "faketime": find_faketime(),
        "prometheus": find_promtool(),
        "nginx-light": find_nginx(),
        "chromium": find_chromium(),
    }
    return [package for package, program in found.items() if program is None] if can_install() else []


def can_install() -> bool:
    """Tell whether this process may install packages of the distribution."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(packages: Sequence[str]) -> None:
    """Install the packages without starting what they hold; raises ServerUnavailableError."""
    if not packages:
        return
    wanted = " ".join(packages)
    if not can_install():
        raise ServerUnavailableError(f"Missing on this machine: {wanted}. As root: apt-get install {wanted}")
    print(f"Installing {wanted} from the distribution ...", flush=True)
    with services_kept_down():
        run_apt("update", "-qq")
        run_apt("install", "-qq", "--yes", "--no-install-recommends", *packages)
    if left := [package for package in missing_packages() if package in packages]:
        raise ServerUnavailableError(f"Installed, yet not found: {' '.join(left)}")


def run_apt(*arguments: str) -> None:
    """Run apt-get without questions; raises ServerUnavailableError with what it said."""
    done = subprocess.run(
        [shutil.which("apt-get") or "apt-get", *LOCK_WAIT, *arguments],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ServerUnavailableError(f"apt-get {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")


@contextmanager
def services_kept_down() -> Iterator[None]:
    """Forbid packages to start services meanwhile; a policy that is there already stands."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()
