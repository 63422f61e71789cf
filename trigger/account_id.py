"""Which account ids a ledger row can carry, and what stands for one that it cannot. Pure."""

import hashlib

from schemas.message import MAXIMUM_ACCOUNT_BYTES

INVALID = "invalid:"
_SHOWN = 100


def checked(account: object) -> tuple[str, str | None]:
    """Give the id to store and what is wrong with the source's, or None.

    A valid id is stored as it is. Another one is stored under a name of its own (`invalid:`, as much of it as can be
    shown in ASCII, a hash), so that it is reported as failed instead of being lost.
    """
    if not isinstance(account, str):
        shown = repr(account) if isinstance(account, int | float | bytes | None) else type(account).__name__
        return _stand_in(shown), f"the account is of type {type(account).__name__}, not text"
    try:
        size = len(account.encode())
    except UnicodeEncodeError:
        return _stand_in(account), "the account holds half of a surrogate pair, which no database stores"
    if not account:
        return _stand_in(account), "the account is empty"
    if "\0" in account:
        return _stand_in(account), "the account holds NUL, which no database stores"
    if size > MAXIMUM_ACCOUNT_BYTES:
        return _stand_in(account), f"the account has {size} bytes; at most {MAXIMUM_ACCOUNT_BYTES} are accepted"
    return str(account), None


def _stand_in(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{INVALID}{ascii(text)[1:-1][:_SHOWN]}:{digest}"
