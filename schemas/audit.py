"""The audit trail's rows as bytes, and the chain that is made of them. Pure, and the only place that says how.

A row's bytes are the line `matins.audit.1`, and then one line for each of FIELDS in that order: the length of its text
in bytes of UTF-8, a colon, the text; `-` alone for null. Instants are written in UTC with microseconds
(`2026-08-25T02:00:00.000000Z`), numbers in decimal, and `detail` as PostgreSQL writes the jsonb as text.

The row's digest is SHA-256 of its salt and its bytes. The link of a position is SHA-256 of the former position's link
and the row's digest; the first follows GENESIS. So a row whose salt and content were taken away on purpose leaves the
chain whole, and nobody can guess from its digest what it said.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, Literal

ActorKind = Literal["operator", "caller"]

FIELDS: Final = (
    "id",
    "at",
    "xid",
    "kind",
    "job",
    "occurrence_id",
    "instance",
    "version",
    "actor",
    "actor_kind",
    "reason",
    "detail",
)
GENESIS: Final = bytes(32)
SALT_BYTES: Final = 16
# The entry by which `forget-account` says which rows it has redacted, and the one of a pruned beginning.
FORGOTTEN: Final = "account_forgotten"
PRUNED: Final = "audit_pruned"

# What an entry can be of, as docs/audit.md lists it.
KINDS: Final = (
    "claim",
    "takeover",
    "released",
    "sealed",
    "closed",
    "ending",
    "fan_out_failed",
    "skipped",
    "coalesced",
    "missed",
    "waits",
    "superseded",
    "expected",
    "called",
    "check_in",
    "rerun",
    "cancel",
    "pause",
    "resume",
    "retire",
    "unretire",
    "alert_opened",
    "alert_closed",
    "acknowledge",
    "silence",
    "unsilence",
    "maintenance_add",
    "maintenance_end",
    "definition",
    "backfill",
    "backfill_done",
    "backfill_cancelled",
    "hold",
    "release",
    "signed_in",
    "signed_out",
    "deploy_marked",
    "redrive",
    "queue_retired",
    "prune",
    PRUNED,
    FORGOTTEN,
)

_FORM: Final = b"matins.audit.1\n"


def canonical(row: Mapping[str, Any]) -> bytes:
    """Give a row's bytes; `row` holds FIELDS, with `detail` as text. Raises KeyError for one that lacks a field."""
    return _FORM + b"".join(_line(row[name]) for name in FIELDS)


def digest(row: Mapping[str, Any], salt: bytes) -> bytes:
    """Give the 32 bytes that stand for a row in the chain; with an empty salt, for one that was redacted."""
    return sha256(salt + canonical(row)).digest()


def link(former: bytes, row_digest: bytes) -> bytes:
    """Give the 32 bytes of a position, from the former position's and the row's digest."""
    return sha256(former + row_digest).digest()


def _line(value: object) -> bytes:
    match value:
        case None:
            return b"-\n"
        case datetime():
            text = value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()
        case int() | str():
            text = str(value).encode()
        case _:
            message = f"no field of a row is a {type(value).__name__}"
            raise TypeError(message)
    return b"%d:%b\n" % (len(text), text)
