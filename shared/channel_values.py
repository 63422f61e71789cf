"""How the values of a channel are written; each reader raises ValueError and says nothing of the value. Pure."""

import re
from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import urlsplit

from shared.api_callers import Key, read_key
from shared.masking import know_secret
from shared.tls import file_problem

MOST_NAMES = 200
MOST_KEYS = 4
LONGEST = 500
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_SECRET = re.compile(r"[!-~]{1,500}", re.ASCII)


def text(pattern: re.Pattern[str]) -> Callable[[Any], str]:
    """Read a text that a pattern matches wholly."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError
        return value

    return read


def secret(value: Any) -> str:
    """Read a secret, which is masked from then on."""
    read = text(_SECRET)(value)
    know_secret(read)
    return read


def truth(value: Any) -> bool:
    """Read true or false. Raises ValueError."""
    if not isinstance(value, bool):
        raise ValueError("not a truth value")  # noqa: TRY004 - as all of these raise
    return value


def whole(lowest: int, highest: int) -> Callable[[Any], int]:
    """Read a whole number between two."""

    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise ValueError
        return value

    return read


def names(
    known: Collection[str] | re.Pattern[str], *, most: int = MOST_NAMES, one: bool = False
) -> Callable[[Any], Any]:
    """Read a list of names, or `one` of them, that are known or look as they should."""

    def fits(value: Any) -> bool:
        if not isinstance(value, str):
            return False
        return bool(known.fullmatch(value)) if isinstance(known, re.Pattern) else value in known

    def read(value: Any) -> Any:
        if one:
            if not fits(value):
                raise ValueError
            return value
        if not isinstance(value, list) or not 1 <= len(value) <= most or not all(map(fits, value)):
            raise ValueError
        return frozenset(value)

    return read


def keys(value: Any) -> tuple[Key, ...]:
    """Read signing keys, at most 4: several are for the days in which one replaces another."""
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_KEYS:
        raise ValueError
    return tuple(read_key(one) if isinstance(one, str) else read_key("") for one in value)


def address(value: Any) -> str:
    """Read an address of HTTP, without a user in it."""
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST or not re.fullmatch(r"[!-~]+", value, re.ASCII):
        raise ValueError
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None or parts.port == 0:
        raise ValueError
    return value


def encrypted_address(value: Any) -> str:
    """Read an address of HTTP that nobody on the way can read."""
    read = address(value)
    if not read.startswith("https://") and urlsplit(read).hostname not in _LOOPBACK:
        raise ValueError
    return read


def files(value: Any) -> str:
    """Read the name of a file of certificates, and see that they can be used."""
    if not isinstance(value, str) or not value or file_problem(value, None, None):
        raise ValueError
    return value
