"""How the values of settings are written: a reader for each kind, which says what is valid."""

import re
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit

from shared.api_callers import read_callers
from shared.channels import read_channels
from shared.console_access import read_access
from shared.tls import file_problem

HIGHEST_PORT = 65_535
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
VERIFYING = ("verify-ca", "verify-full")
BROKER_USERS = ("owner", "trigger", "worker", "operator")

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration(lowest: float, highest: float) -> Callable[[str], timedelta]:
    """Read a duration between two numbers of seconds."""
    valid = f"a duration from {lowest:g}s to {highest:g}s, as 500ms, 30s, 5m or 2h"

    def read(text: str) -> timedelta:
        match = _DURATION.fullmatch(text)
        value = float(match[1]) * _UNITS[match[2]] if match else None
        if value is None or not lowest <= value <= highest:
            raise ValueError(valid)
        return timedelta(seconds=value)

    return read


def whole(lowest: int, highest: int) -> Callable[[str], int]:
    """Read a whole number between two."""

    def read(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or not lowest <= int(text) <= highest:
            raise ValueError(f"a whole number from {lowest} to {highest}")
        return int(text)

    return read


def share(text: str) -> float:
    """Read a share from 0 to 1. Raises ValueError with what is valid."""
    if not re.fullmatch(r"[01](\.\d{1,6})?", text, re.ASCII) or float(text) > 1:
        raise ValueError("a share from 0 to 1, as 0.01")
    return float(text)


def matching(pattern: str, valid: str) -> Callable[[str], str]:
    """Read a text that a pattern matches wholly; `valid` says how it looks."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(valid)
        return text

    return read


def modules(text: str) -> tuple[str, ...]:
    """Read the names of modules. Raises ValueError with what is valid."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", name, re.ASCII) for name in names):
        raise ValueError("module names, with commas between, as billing.jobs,reports.jobs")
    return names


def delays(text: str) -> tuple[int, ...]:
    """Read rising whole seconds. Raises ValueError with what is valid."""
    parts = text.split(",")
    if not all(re.fullmatch(r"\d{1,6}", part, re.ASCII) for part in parts):
        raise ValueError("whole seconds in rising order, with commas between, as 1,5,30")
    delays = tuple(int(part) for part in parts)
    if delays[0] < 1 or list(delays) != sorted(set(delays)):
        raise ValueError("whole seconds in rising order, with commas between, as 1,5,30")
    return delays


def broker_users(text: str) -> dict[str, str]:
    """Read other names for the users in BROKER_USERS; give every one's name. Raises ValueError with what is valid."""
    pairs = [part.strip().partition("=") for part in text.split(",") if text]
    names = dict(zip(BROKER_USERS, BROKER_USERS, strict=True)) | {user: name for user, _, name in pairs}
    known = set(names) == set(BROKER_USERS) and len({user for user, _, _ in pairs}) == len(pairs)
    fit = all(re.fullmatch(r"[A-Za-z0-9._@-]{1,100}", name, re.ASCII) for name in names.values())
    if not known or not fit or len(set(names.values())) < len(names):
        raise ValueError(
            "other names for owner, trigger, worker or operator, as trigger=acme_trigger,worker=acme_worker"
        )
    return names


def address(text: str) -> tuple[str, int]:
    """Read a host and a port. Raises ValueError with what is valid."""
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch(r"\d{1,5}", port, re.ASCII) or int(port) > HIGHEST_PORT:
        raise ValueError("HOST:PORT, as 0.0.0.0:8080")
    return host.strip("[]"), int(port)


OFF = ("", 0)


def console_address(text: str) -> tuple[str, int]:
    """Read a host and a port, or OFF. Raises ValueError with what is valid."""
    if text == "off":
        return OFF
    try:
        return address(text)
    except ValueError:
        raise ValueError("off, or HOST:PORT, as 127.0.0.1:8082") from None


def console_access(text: str) -> str:
    """See that who may do what in the console can be read; give the text. Raises ValueError with every fault."""
    read_access(text)
    return text


def trace_url(text: str) -> str:
    """Read an address with {trace_id} in it, or nothing. Raises ValueError with what is valid."""
    if text and (not re.fullmatch(r"https?://[!-~]+", text, re.ASCII) or text.count("{trace_id}") != 1):
        raise ValueError("an address with {trace_id} in it, as http://localhost:16686/trace/{trace_id}")
    return text


def callers(text: str) -> str:
    """See that callers of the endpoint can be read; give the text. Raises ValueError with every fault."""
    read_callers(text)
    return text


def channels(text: str) -> str:
    """See that the channels of alerts can be read; give the text. Raises ValueError with every fault."""
    read_channels(text)
    return text


_POSTGRES_FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
_BROKER_FORM = "amqp://USER:PASSWORD@HOST:PORT/VHOST (amqps:// for TLS)"
_HTTP_FORM = "http://USER:PASSWORD@HOST:PORT"
# What the driver takes beside them (to verify nothing, say) is left out on purpose.
_TLS_FILES = ("cafile", "certfile", "keyfile")


def postgres_url(text: str) -> str:
    """Read an address of PostgreSQL, and see that the files for TLS that it names are there. Raises ValueError."""
    query = _query(text, r"postgres(ql)?://\S+", _POSTGRES_FORM)
    mode, authority = query.get("sslmode"), query.get("sslrootcert")
    if mode is not None and mode not in SSL_MODES:
        raise ValueError(f"sslmode={' | '.join(SSL_MODES)}")
    if mode in VERIFYING and not authority:
        raise ValueError(f"sslmode={mode} with sslrootcert=FILE, the certificates of who signs the server's")
    if authority and mode not in {*VERIFYING, "require"}:
        # PostgreSQL's own clients would trust any server then, the certificates notwithstanding.
        raise ValueError("sslrootcert with sslmode=verify-full, without which it has no effect")
    if problem := file_problem(authority, query.get("sslcert"), query.get("sslkey")):
        raise ValueError(f"files that can be used: {problem}")
    return text


def broker_url(text: str) -> str:
    """Read an address of RabbitMQ, and see that the files for TLS that it names are there. Raises ValueError."""
    return _with_tls_files(text, r"amqps?://\S+", _BROKER_FORM, "amqps://")


def http_url(text: str) -> str:
    """Read an HTTP address, or nothing, and see that the files for TLS that it names are there. Raises ValueError."""
    return _with_tls_files(text, r"https?://\S+", _HTTP_FORM, "https://") if text else text


def _with_tls_files(text: str, pattern: str, form: str, encrypted: str) -> str:
    query = _query(text, pattern, form)
    try:
        whole = bool(urlsplit(text).hostname) and urlsplit(text).port != 0
    except ValueError:
        whole = False
    if not whole:
        raise ValueError(form)
    if query and not text.startswith(encrypted):
        raise ValueError(f"{encrypted}… where something follows a '?'")
    if set(query) - set(_TLS_FILES):
        raise ValueError(f"nothing but {', '.join(_TLS_FILES)} after the '?'")
    if "keyfile" in query and "certfile" not in query:
        raise ValueError("a certfile beside the keyfile")
    if problem := file_problem(*(query.get(name) for name in _TLS_FILES)):
        raise ValueError(f"files that can be used: {problem}")
    return text


def _query(text: str, pattern: str, form: str) -> dict[str, str]:
    matching(pattern, form)(text)
    if "@" in "".join(re.split(r"([/?#])", text.partition("://")[2], maxsplit=1)[1:]):
        # Where a password ends early, its rest is taken for a name, and is said aloud.
        raise ValueError(f"{form}, with / ? # @ : % in names and passwords written as %2F %3F %23 %40 %3A %25")
    return dict(parse_qsl(text.partition("?")[2].partition("#")[0], keep_blank_values=True))
