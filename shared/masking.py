"""What may be said aloud: no password, no control character, nothing longer than a reader wants.

Logs, health reasons, spans, alerts and the ledger carry text that other people wrote: an account's id, a driver's error
message, a handler's exception. Everything passes through here before it leaves the process.

The passwords that this process has read itself are known, and are found wherever they stand and however a URL would
write them; others are known by what stands around them, as in a URL or after `password=`, or by their own form.
"""

import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, timedelta
from typing import Any
from urllib.parse import quote, quote_plus, unquote

LONGEST_TEXT = 2048
LONGEST_TRACEBACK = 8 * 1024
LARGEST_COLLECTION = 50
_DEEPEST_COLLECTION = 4
_MASKED_AT_MOST = 4 * LONGEST_TEXT
_INTEGER_BITS = 63
SHORTEST_SECRET = 8
_NO_WORD = 16
_KNOWN_AT_MOST = 128

# A number up to a slash after the colon is a port. Lengths are bounded so that hostile text costs no quadratic time.
_URL_PASSWORD = re.compile(
    r"(\b[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/:@?#]{0,255}):(?!\d+(?:[/?#\s]|$))(?:[^\s/]{0,512}@|\S{0,512}?@)"
)
_NAMED_SECRET = re.compile(
    r"\b(password|passwd|secret|token|api[_-]?key|access[_-]?key|signature)(\s?=\s?)[^\s&;,'\"]{1,512}", re.IGNORECASE
)
# What callers of the endpoint prove themselves with, known by its form: a signing key, and a signed token.
_CALLERS_SECRET = re.compile(
    r"whsec_[A-Za-z0-9+/=_-]{1,512}|(?<![\w.-])eyJ[\w-]{1,8192}\.eyJ[\w-]{1,8192}\.[\w-]{0,8192}"
)
# C0 without tab and newline, DEL and C1, line and paragraph separators, marks that reorder text, half characters.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_ONE_BYTE = 0xFF


class _Known:
    """The secrets that this process has read, as one expression that finds them, however they are written."""

    def __init__(self) -> None:
        self._written: dict[str, None] = {}
        self.expression: re.Pattern[str] | None = None

    def add(self, secret: str) -> None:
        forms = (secret, quote(secret, safe=""), quote_plus(secret), repr(secret)[1:-1], repr(secret.encode())[2:-1])
        fresh = [form for form in forms if len(form) >= SHORTEST_SECRET and form not in self._written]
        if fresh:
            # Rotated ones stay known for a while: what failed under them is still being told.
            self._written = dict.fromkeys([*self._written, *fresh][-_KNOWN_AT_MOST:])
            longest_first = sorted(self._written, key=len, reverse=True)
            self.expression = re.compile("|".join(map(_whole, longest_first)), re.IGNORECASE)


_known = _Known()


def know_secret(secret: str) -> None:
    """Never let `secret` be said again; one of fewer than 8 characters is too like other words, and is left out."""
    _known.add(secret)


def know_secrets_of(address: str) -> None:
    """Never let the password of an address be said again, as it is written there or as it is meant.

    It ends at the last `@`, wherever that is: one that is not percent-encoded may hold every character.
    """
    authority = address.partition("://")[2]
    user, at, _ = authority.rpartition("@")
    password = user.partition(":")[2]
    if not at:
        return
    for secret in (password, unquote(password)):
        know_secret(secret)


def know_secrets_in(variables: Mapping[str, str], addresses: re.Pattern[str]) -> None:
    """Know the secrets that are no settings: of the collector, of the variables named as addresses, of the driver."""
    for variable, value in variables.items():
        if addresses.fullmatch(variable):
            know_secrets_of(value)
        elif variable == "PGPASSWORD":
            know_secret(value)
        elif variable.startswith("OTEL_EXPORTER_") and variable.endswith("_HEADERS"):
            for pair in value.split(","):
                for part in unquote(pair.partition("=")[2]).split():
                    know_secret(part)
        elif variable.startswith("OTEL_EXPORTER_"):
            know_secrets_of(value)


def _whole(secret: str) -> str:
    """Find a secret, but a short one not inside of a word: it may be a word itself, or the beginning of one."""
    short = len(secret) < _NO_WORD
    before = r"(?<![^\W_])" if short and secret[0].isalnum() else ""
    after = r"(?![^\W_])" if short and secret[-1].isalnum() else ""
    return f"{before}{re.escape(secret)}{after}"


def mask(text: str) -> str:
    """Replace by `***` known secrets, passwords in URLs, keys, tokens, and what follows `password=` and its like."""
    if _known.expression is not None:
        text = _known.expression.sub("***", text)
    if "whsec_" in text or "eyJ" in text:
        text = _CALLERS_SECRET.sub("***", text)
    if "://" in text and "@" in text:
        text = _URL_PASSWORD.sub(r"\1:***@", text)
    return _NAMED_SECRET.sub(r"\1\2***", text) if "=" in text else text


def plain(text: str, limit: int = LONGEST_TEXT) -> str:
    """Mask the secrets in `text`, escape its control characters but tab and newline, cut it to `limit` characters."""
    shown = _UNPRINTABLE.sub(_escaped, mask(text[:_MASKED_AT_MOST]))
    if len(shown) <= limit and len(text) <= _MASKED_AT_MOST:
        return shown
    return f"{shown[:limit]}…[cut from {len(text)} characters]"


def plain_traceback(text: str) -> str:
    """Make a traceback safe; of a long one the end stays, since it names the error."""
    shown = _UNPRINTABLE.sub(_escaped, mask(text))
    if len(shown) <= LONGEST_TRACEBACK:
        return shown
    return f"[cut from {len(shown)} characters]…{shown[-LONGEST_TRACEBACK:]}"


def plain_value(value: object, depth: int = 0) -> object:
    """Turn any value into one that JSON can carry.

    Text is made safe, collections are shortened, times become RFC 3339 and durations seconds; anything
    else says what `str` says of it. `depth` is how deep inside another collection the value lies.
    """
    shown: object
    match value:
        case str():
            shown = plain(str(value))
        case None | bool():
            shown = value
        case int() if value.bit_length() <= _INTEGER_BITS:
            shown = int(value)
        case float() if math.isfinite(value):
            shown = float(value)
        case date():
            shown = value.isoformat().replace("+00:00", "Z")
        case timedelta():
            shown = value.total_seconds()
        case Mapping() | Sequence() | AbstractSet() if not isinstance(value, bytes) and depth < _DEEPEST_COLLECTION:
            shown = _plain_collection(value, depth + 1)
        case _:
            shown = plain(text_of(value))
    return shown


def _plain_collection(value: Mapping[Any, Any] | Sequence[Any] | AbstractSet[Any], depth: int) -> object:
    shown = [item for item, _ in zip(value, range(LARGEST_COLLECTION), strict=False)]
    left_out = len(value) - len(shown)
    if isinstance(value, Mapping):
        entries = {plain(text_of(key)): plain_value(value[key], depth) for key in shown}
        return entries | ({"…": f"{left_out} more"} if left_out else {})
    return [plain_value(item, depth) for item in shown] + ([f"…{left_out} more"] if left_out else [])


def text_of(value: object) -> str:
    """Give what `str` says of any value, an exception too, or of which type it is where it cannot say."""
    try:
        return str(value)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - what cannot describe itself must not stop who mentions it
        return f"<{type(value).__name__}: {type(error).__name__}>"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code <= _ONE_BYTE else f"\\u{code:04x}"
