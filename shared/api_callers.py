"""Who may call the endpoint for outside schedulers: read from TOML, every fault at once. Pure.

A caller proves who it is by signing what it sends with one of its keys, or by a token of a platform that it runs on. It
may name the jobs of its own list, and no others. Several keys are for the days in which one replaces another.
"""

import base64
import binascii
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from shared.table_reading import TableReading

KEY_PREFIX = "whsec_"
SHORTEST_KEY, LONGEST_KEY = 24, 64
MOST_CALLERS, MOST_KEYS, MOST_JOBS = 50, 4, 200
ALGORITHMS = ("RS256", "ES256")
LONGEST_TEXT = 500
LONGEST_AGE = 24 * 3600
MOST_CALLS_A_MINUTE = 6000
FORM = (
    "TOML with a table for each caller, as [callers.NAME] with jobs = [...] or check_ins = [...], and "
    "keys = ['whsec_...'] or [callers.NAME.token]"
)

_NAME = re.compile(r"[a-z][a-z0-9._-]{0,62}", re.ASCII)
_JOB = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Key:
    """A secret that a caller signs with; `fingerprint` names it where the key itself must not be said."""

    secret: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """Eight hexadecimal characters that tell one key from another, and nothing of it."""
        return sha256(b"matins key " + self.secret).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class TokenRule:
    """Which tokens of a platform are a caller's.

    `keys_url` has the issuer's public keys. `claims` are demanded as they stand, and name one subject or one address.
    A token older than `longest_age` is refused, whenever it expires.
    """

    issuer: str
    audience: str
    keys_url: str
    claims: Mapping[str, str | bool | int]
    algorithms: tuple[str, ...] = ALGORITHMS
    longest_age: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody outside who may have the occurrences of `jobs` claimed, and may report those of `check_ins`.

    `rate` is in calls a minute and process.
    """

    name: str
    jobs: frozenset[str]
    keys: tuple[Key, ...] = ()
    token: TokenRule | None = None
    rate: int = 60
    check_ins: frozenset[str] = frozenset()


def read_callers(text: str) -> tuple[Caller, ...]:
    """Read the callers; none from an empty text. Raises ValueError that says what is valid and every fault."""
    if not text.strip():
        return ()
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # What the parser says quotes nothing but the place.
        raise ValueError(f"{FORM}; it is not TOML: {error}") from None
    faults: list[str] = []
    described = tables.pop("callers", None)
    faults += [f"{name!r}: there is nothing but [callers.NAME] at the top" for name in tables]
    if not isinstance(described, dict) or not 1 <= len(described) <= MOST_CALLERS:
        raise ValueError(f"{FORM}, from 1 to {MOST_CALLERS} of them" + "".join(f"\n  {fault}" for fault in faults))
    callers = [_caller(name, table, faults) for name, table in described.items()]
    faults += _shared_keys(callers)
    if faults:
        raise ValueError(FORM + "".join(f"\n  {fault}" for fault in faults))
    return tuple(callers)


def read_key(text: str) -> Key:
    """Read `whsec_` and the base64 of 24 to 64 bytes. Raises ValueError, which says nothing of the key."""
    try:
        secret = base64.b64decode(text.removeprefix(KEY_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not text.startswith(KEY_PREFIX) or not SHORTEST_KEY <= len(secret) <= LONGEST_KEY:
        raise ValueError(f"a key is {KEY_PREFIX} and the base64 of {SHORTEST_KEY} to {LONGEST_KEY} random bytes")
    return Key(secret)


def _caller(name: str, table: Any, faults: list[str]) -> Caller:
    reading = TableReading(f"callers.{name[:80]}", table, faults)
    if not _NAME.fullmatch(name):
        reading.fault("a caller's name is small letters, digits and . _ -, at most 63")
    names = f"a list of 1 to {MOST_JOBS} names of jobs"
    jobs = reading.take("jobs", _jobs, names, frozenset())
    check_ins = reading.take("check_ins", _jobs, names, frozenset())
    keys = reading.take("keys", _keys, f"a list of 1 to {MOST_KEYS} keys, each {KEY_PREFIX} and base64", ())
    rate = reading.take("rate", _whole(1, MOST_CALLS_A_MINUTE), f"calls a minute, 1 to {MOST_CALLS_A_MINUTE}", 60)
    token = None
    if "token" in reading.table:
        token = _token(TableReading(f"{reading.place}.token", reading.table.pop("token"), faults))
    if not reading.given & {"jobs", "check_ins"}:
        reading.fault("jobs is missing: the names of the jobs that it may call, or check_ins: those that it reports")
    if "keys" not in reading.given and token is None:
        reading.fault("neither keys nor a token says how it proves who it is")
    reading.refuse_others("jobs, check_ins, keys, rate and token")
    return Caller(name, jobs, keys, token, rate, check_ins)


def _token(reading: TableReading) -> TokenRule:
    text = f"a text of 1 to {LONGEST_TEXT} characters"
    read = reading.take
    rule = TokenRule(
        issuer=read("issuer", _text, text, ""),
        audience=read("audience", _text, text, ""),
        keys_url=read("keys_url", _keys_url, "an https:// address (http:// on the loopback interface alone)", ""),
        claims=read("claims", _claims, "a table that demands sub, or email, with texts, truths or whole numbers", {}),
        algorithms=read("algorithms", _algorithms, f"a list of {' and '.join(ALGORITHMS)}", ALGORITHMS),
        longest_age=timedelta(
            seconds=read("longest_age", _whole(60, LONGEST_AGE), f"seconds, 60 to {LONGEST_AGE}", 3600)
        ),
    )
    for name in ("issuer", "audience", "keys_url", "claims"):
        if name not in reading.given:
            reading.fault(f"{name} is missing")
    reading.refuse_others("issuer, audience, keys_url, claims, algorithms and longest_age")
    return rule


def _listed(value: Any, most: int) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= most:
        raise ValueError
    return value


def _jobs(value: Any) -> frozenset[str]:
    names = _listed(value, MOST_JOBS)
    if not all(isinstance(name, str) and _JOB.fullmatch(name) for name in names):
        raise ValueError
    return frozenset(names)


def _keys(value: Any) -> tuple[Key, ...]:
    return tuple(read_key(text) if isinstance(text, str) else read_key("") for text in _listed(value, MOST_KEYS))


def _algorithms(value: Any) -> tuple[str, ...]:
    names = _listed(value, len(ALGORITHMS))
    if not all(name in ALGORITHMS for name in names):
        raise ValueError
    return tuple(names)


def _whole(lowest: int, highest: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise ValueError
        return value

    return read


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_TEXT:
        raise ValueError
    return value


def _keys_url(value: Any) -> str:
    parts = urlsplit(_text(value))
    encrypted = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not encrypted or not parts.hostname or parts.username is not None or not str(value).isprintable():
        raise ValueError
    return str(value)


def _claims(value: Any) -> dict[str, str | bool | int]:
    """Read the demanded claims; who demands no subject would take every token of the issuer for the caller's."""
    if not isinstance(value, dict) or not {"sub", "email"} & value.keys():
        raise ValueError
    if not all(isinstance(one, str | bool | int) and one != "" for one in value.values()):
        raise ValueError
    if not all(isinstance(value[name], str) for name in ("sub", "email") if name in value):
        raise ValueError
    # An address that the issuer has not seen proved may be anybody's.
    return value | ({"email_verified": True} if "email" in value else {})


def _shared_keys(callers: list[Caller]) -> Iterator[str]:
    owners: dict[bytes, str] = {}
    for caller in callers:
        for key in caller.keys:
            other = owners.setdefault(key.secret, caller.name)
            if other != caller.name:
                yield f"callers.{caller.name}: a key is that of callers.{other} too: each needs its own"
