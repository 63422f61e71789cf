"""What may be said aloud: no password, no control character, nothing longer than a reader wants.

Logs, health reasons, spans and alerts carry text that other people wrote: an account's id, a driver's error message, a
handler's exception. Everything passes through here before it leaves the process.
"""

import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, timedelta
from typing import Any

LONGEST_TEXT = 2048
LONGEST_TRACEBACK = 8 * 1024
LARGEST_COLLECTION = 50
_DEEPEST_COLLECTION = 4
_MASKED_AT_MOST = 4 * LONGEST_TEXT
_INTEGER_BITS = 63

# A number up to a slash after the colon is a port. Lengths are bounded so that hostile text costs no quadratic time.
_URL_PASSWORD = re.compile(
    r"(\b[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/:@?#]{0,255}):(?!\d+(?:[/?#\s]|$))(?:[^\s/]{0,512}@|\S{0,512}?@)"
)
_NAMED_SECRET = re.compile(
    r"\b(password|passwd|secret|token|api[_-]?key|access[_-]?key|signature)(\s?=\s?)[^\s&;,'\"]{1,512}", re.IGNORECASE
)
# C0 without tab and newline, DEL and C1, line and paragraph separators, marks that reorder text, half characters.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_ONE_BYTE = 0xFF


def mask(text: str) -> str:
    """Replace the passwords in URLs by `***`, and the values of `password=`, `token=` and their like."""
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
