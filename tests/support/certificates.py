"""Certificates made for a test by `openssl`: an authority, and what it signs for names, for a time, or too long ago."""

import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

CONFIGURATION = """
[ca]
default_ca = own
[own]
new_certs_dir = {folder}
database = {folder}/index.txt
rand_serial = yes
default_md = sha256
policy = anything
copy_extensions = copy
[anything]
commonName = supplied
"""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, in files; `authority` is the certificate of who signed it."""

    authority: Path
    certificate: Path
    key: Path


class Authority:
    """Signs certificates; its own is the file `certificate`."""

    def __init__(self, folder: Path) -> None:
        """Make an authority whose files lie in `folder`."""
        folder.mkdir()
        self._folder = folder
        self.certificate = folder / "authority.pem"
        self._key = folder / "authority.key"
        (folder / "index.txt").touch()
        (folder / "openssl.cnf").write_text(CONFIGURATION.format(folder=folder))
        more = ["-addext", "basicConstraints=critical,CA:true", "-addext", "keyUsage=critical,keyCertSign,cRLSign"]
        _openssl("req", "-x509", "-subj", f"/CN={folder.name}", "-days", "2", *more, *_key(self._key), self.certificate)

    def sign(self, name: str, *alternatives: str, ended: bool = False) -> Certificate:
        """Make a certificate for alternative names (`DNS:localhost`), valid for a day, or until yesterday."""
        request, key, made = (self._folder / f"{name}.{kind}" for kind in ("csr", "key", "pem"))
        also = ["-addext", f"subjectAltName={','.join(alternatives)}"] if alternatives else []
        _openssl("req", "-new", "-subj", f"/CN={name}", *also, *_key(key), request)
        now = datetime.now(UTC) - timedelta(days=2 if ended else 1)
        times: list[str | Path] = ["-startdate", _time(now), "-enddate", _time(now + timedelta(days=1 if ended else 2))]
        signer: list[str | Path] = [
            "-cert",
            self.certificate,
            "-keyfile",
            self._key,
            "-config",
            self._folder / "openssl.cnf",
        ]
        _openssl("ca", "-batch", "-notext", "-in", request, *times, *signer, made)
        return Certificate(self.certificate, made, key)


def _key(path: Path) -> list[str | Path]:
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path]


def _time(instant: datetime) -> str:
    return instant.strftime("%Y%m%d%H%M%SZ")


def _openssl(command: str, *arguments: str | Path) -> None:
    *options, output = arguments
    program = shutil.which("openssl")
    assert program is not None, "these tests need openssl, which the package of PostgreSQL depends on"
    done = subprocess.run(
        [program, command, *options, "-out", output], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, f"openssl {command}: {done.stderr}"
