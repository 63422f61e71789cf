"""Who may look at the console, and who may act there: read from TOML, every fault at once. Pure.

People sign in at an OpenID provider, or a reverse proxy says who they are; programs bear a token. Each of them either
reads or operates, and who is given neither is nobody here.
"""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from shared.channel_values import encrypted_address, secret, text, whole
from shared.table_reading import TableReading

Role = Literal["read", "operate"]
EVERYONE: Final = "everyone"
MOST_TOKENS, MOST_NETWORKS, MOST_VALUES, MOST_SCOPES = 50, 50, 200, 20
LONGEST_VALUE: Final = 200
HOUR, WEEK = 3600, 7 * 86_400
SCOPES: Final = ("openid", "email", "profile")
NAME_CLAIM, ROLES_CLAIM = "email", "groups"
FORM: Final = "TOML with url = 'https://...' and at least one of [oidc], [proxy] and [tokens.NAME]"

# The values that give a role, or EVERYONE.
Given: TypeAlias = frozenset[str] | Literal["everyone"]
Network: TypeAlias = IPv4Network | IPv6Network

_NAME = re.compile(r"[a-z][a-z0-9._-]{0,62}", re.ASCII)
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_WORD = re.compile(r"[!-~]{1,200}", re.ASCII)
# What says something else of a request already.
_OTHERS_HEADERS = frozenset({"authorization", "cookie", "forwarded", "host", "origin", "x-forwarded-for"})
_DEFAULT_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Grants:
    """Which values of somebody's claims or groups give which role."""

    read: Given = frozenset()
    operate: Given = frozenset()

    def role_of(self, values: Iterable[str]) -> Role | None:
        """Give the role of somebody with these values, or None."""
        held = frozenset(values)
        if self.operate == EVERYONE or held & self.operate:
            return "operate"
        return "read" if self.read == EVERYONE or held & self.read else None

    def names(self, value: str) -> bool:
        """Tell whether a value decides about anything."""
        return any(given != EVERYONE and value in given for given in (self.read, self.operate))


@dataclass(frozen=True, slots=True)
class Oidc:
    """An OpenID provider, and which claim of its tokens is somebody's name, and which give a role."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    grants: Grants
    scopes: tuple[str, ...] = SCOPES
    name_claim: str = NAME_CLAIM
    roles_claim: str = ROLES_CLAIM


@dataclass(frozen=True, slots=True)
class Proxy:
    """Reverse proxies, by their addresses, that say in a header who asks; without `groups_header` the name decides.

    `sign_out` is where they sign people out, or ''.
    """

    trusted: tuple[Network, ...]
    name_header: str
    groups_header: str
    grants: Grants
    sign_out: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """A program that bears a token, of which only the SHA-256 is known; not taken from `not_after` on."""

    name: str
    digest: bytes = field(repr=False)
    role: Role
    not_after: datetime | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """Who may do what. `origin` is the console's address as browsers write it: scheme, host, and a port of its own.

    A session ends `idle` after somebody last went to a page, and `longest` after the sign-in.
    """

    origin: str
    oidc: Oidc | None
    proxy: Proxy | None
    tokens: tuple[Token, ...]
    idle: timedelta = timedelta(seconds=HOUR)
    longest: timedelta = timedelta(seconds=12 * HOUR)

    @property
    def host(self) -> str:
        """The name under which the console answers, an IPv6 address in brackets."""
        host = urlsplit(self.origin).hostname or ""
        return f"[{host}]" if ":" in host else host

    @property
    def encrypted(self) -> bool:
        """Whether browsers reach it over TLS."""
        return self.origin.startswith("https://")


def read_access(content: str) -> Access | None:
    """Read who may do what; None from an empty text: nobody signs in. Raises ValueError with every fault."""
    if not content.strip():
        return None
    try:
        tables = tomllib.loads(content)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # What the parser says quotes nothing but the place.
        raise ValueError(f"{FORM}; it is not TOML: {error}") from None
    faults: list[str] = []
    reading = TableReading("at the top", tables, faults)
    origin = reading.take("url", _origin, "an https:// address without a path (http:// on the loopback alone)", "")
    oidc, proxy, tokens, sessions = (reading.table.pop(name, None) for name in ("oidc", "proxy", "tokens", "sessions"))
    if "url" not in reading.given:
        reading.fault("url is missing: the address by which browsers reach the console")
    if oidc is None and proxy is None and tokens is None:
        reading.fault("none of [oidc], [proxy] and [tokens.NAME] says who may look")
    reading.refuse_others("url, oidc, proxy, tokens and sessions")
    idle, longest = _sessions(TableReading("sessions", {} if sessions is None else sessions, faults))
    read = Access(
        origin,
        None if oidc is None else _oidc(TableReading("oidc", oidc, faults)),
        None if proxy is None else _proxy(TableReading("proxy", proxy, faults)),
        () if tokens is None else _tokens(tokens, faults),
        idle,
        longest,
    )
    if faults:
        raise ValueError(FORM + "".join(f"\n  {fault}" for fault in faults))
    return read


def _oidc(reading: TableReading) -> Oidc:
    word = "a text of 1 to 200 printable ASCII characters"
    take = reading.take
    read = Oidc(
        issuer=take("issuer", encrypted_address, "an https:// address (http:// on the loopback interface alone)", ""),
        client_id=take("client_id", text(_WORD), word, ""),
        client_secret=take("client_secret", secret, "a text of 1 to 500 printable ASCII characters", ""),
        grants=_grants(reading),
        scopes=take("scopes", _scopes, f"a list of 1 to {MOST_SCOPES} scopes, openid among them", SCOPES),
        name_claim=take("name_claim", text(_WORD), word, NAME_CLAIM),
        roles_claim=take("roles_claim", text(_WORD), word, ROLES_CLAIM),
    )
    for name in ("issuer", "client_id"):
        if name not in reading.given:
            reading.fault(f"{name} is missing")
    reading.refuse_others("issuer, client_id, client_secret, scopes, name_claim, roles_claim, read and operate")
    return read


def _proxy(reading: TableReading) -> Proxy:
    header = "the name of a header that says nothing else already"
    read = Proxy(
        reading.take("trusted", _networks, "a list of networks, as 10.0.0.0/8, and none of everybody", ()),
        reading.take("name_header", _header, header, ""),
        reading.take("groups_header", _header, header, ""),
        _grants(reading),
        reading.take("sign_out", _place, "a path as /oauth2/sign_out, or an https:// address", ""),
    )
    for name in ("trusted", "name_header"):
        if name not in reading.given:
            reading.fault(f"{name} is missing")
    if read.name_header and read.name_header == read.groups_header:
        reading.fault("groups_header: valid is another header than name_header")
    reading.refuse_others("trusted, name_header, groups_header, sign_out, read and operate")
    return read


def _grants(reading: TableReading) -> Grants:
    valid = f"a list of 1 to {MOST_VALUES} texts, or '{EVERYONE}'"
    grants = Grants(
        reading.take("read", _given, valid, frozenset()), reading.take("operate", _given, valid, frozenset())
    )
    if not reading.given & {"read", "operate"}:
        reading.fault(f"neither read nor operate says who has which role: {valid}")
    return grants


def _tokens(described: Any, faults: list[str]) -> tuple[Token, ...]:
    if not isinstance(described, dict) or not 1 <= len(described) <= MOST_TOKENS:
        faults.append(f"tokens: valid is a table for each, as [tokens.NAME], from 1 to {MOST_TOKENS} of them")
        return ()
    tokens = tuple(_token(name, table, faults) for name, table in described.items())
    owners: dict[bytes, str] = {}
    for token in tokens:
        other = owners.setdefault(token.digest, token.name)
        if token.digest and other != token.name:
            faults.append(f"tokens.{token.name}: its token is that of tokens.{other} too: each needs its own")
    return tokens


def _token(name: str, table: Any, faults: list[str]) -> Token:
    reading = TableReading(f"tokens.{name[:80]}", table, faults)
    if not _NAME.fullmatch(name):
        reading.fault("a token's name is small letters, digits and . _ -, at most 63")
    token = Token(
        name,
        reading.take("sha256", lambda value: bytes.fromhex(text(_DIGEST)(value)), "64 hexadecimal digits", b""),
        reading.take("role", text(re.compile("read|operate")), "'read' or 'operate'", "read"),
        reading.take("not_after", _instant, "an instant with a zone, as 2027-01-01T00:00:00Z", None),
    )
    for needed in ("sha256", "role"):
        if needed not in reading.given:
            reading.fault(f"{needed} is missing")
    reading.refuse_others("sha256, role and not_after")
    return token


def _sessions(reading: TableReading) -> tuple[timedelta, timedelta]:
    idle = reading.take("idle", whole(60, WEEK), f"seconds, 60 to {WEEK}", HOUR)
    longest = reading.take("longest", whole(60, WEEK), f"seconds, 60 to {WEEK}", 12 * HOUR)
    reading.refuse_others("idle and longest")
    return timedelta(seconds=idle), timedelta(seconds=longest)


def _origin(value: Any) -> str:
    parts = urlsplit(encrypted_address(value))
    if parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ValueError
    host = str(parts.hostname)
    port = "" if parts.port in {None, _DEFAULT_PORTS[parts.scheme]} else f":{parts.port}"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def _place(value: Any) -> str:
    is_path = isinstance(value, str) and re.fullmatch(r"/[!-\[\]-~]{0,499}", value, re.ASCII) and value[:2] != "//"
    return str(value) if is_path else encrypted_address(value)


def _given(value: Any) -> Given:
    if value == EVERYONE:
        return "everyone"
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_VALUES:
        raise ValueError
    if not all(isinstance(one, str) and 1 <= len(one) <= LONGEST_VALUE and one.isprintable() for one in value):
        raise ValueError
    return frozenset(value)


def _scopes(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_SCOPES or "openid" not in value:
        raise ValueError
    return tuple(text(_WORD)(one) for one in value)


def _networks(value: Any) -> tuple[Network, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_NETWORKS:
        raise ValueError
    networks = tuple(ip_network(one if isinstance(one, str) else "") for one in value)
    if any(network.prefixlen == 0 for network in networks):
        raise ValueError
    return networks


def _header(value: Any) -> str:
    name = text(_HEADER)(value).lower()
    if name in _OTHERS_HEADERS:
        raise ValueError
    return name


def _instant(value: Any) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError
    return value
