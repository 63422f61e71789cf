"""What travels through the broker: the accounts that one message asks a worker to do.

A message only points at ledger rows; it carries nothing that a worker trusts. A reader accepts unknown fields (a newer
release of the same version may add some) and refuses another version.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec

MESSAGE_VERSION = 1
# By field, the version that first had it, for those that version 1 lacks.
FIRST_IN: Final[Mapping[str, int]] = {}
MAXIMUM_BYTES = 64 * 1024
MAXIMUM_ACCOUNT_BYTES = 512
EARLIEST = datetime(1970, 1, 2, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)

_Account = Annotated[str, msgspec.Meta(min_length=1, max_length=MAXIMUM_ACCOUNT_BYTES)]


class UnreadableMessage(ValueError):
    """A message body that is no work message: not JSON, of wrong types, too large."""


class NewerMessage(ValueError):
    """A work message of a version that this release cannot read; a newer worker can."""


class WorkMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk: accounts of one occurrence, in one generation.

    `epoch` is the occurrence's, for information only: messages of an earlier epoch are valid work after a takeover.
    `published_at` is the database's time just before the publish. `isolated` asks for a start of its own, alone in the
    worker's process, because an earlier one ended without a trace.
    """

    version: Annotated[int, msgspec.Meta(ge=1)] = MESSAGE_VERSION
    job: Annotated[str, msgspec.Meta(min_length=1, max_length=63)]
    occurrence_id: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
    scheduled_at: Annotated[datetime, msgspec.Meta(tz=True)]
    generation: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    epoch: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    published_at: Annotated[datetime, msgspec.Meta(tz=True)]
    accounts: Annotated[tuple[_Account, ...], msgspec.Meta(min_length=1, max_length=10_000)]
    isolated: bool = False


class _Version(msgspec.Struct):
    version: int


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(WorkMessage)
_version_decoder = msgspec.json.Decoder(_Version)


def encode(message: WorkMessage, version: int = MESSAGE_VERSION) -> bytes:
    """Write a message as UTF-8 JSON, in this release's version or an earlier one, without what that one lacks."""
    if version >= message.version:
        return _encoder.encode(message)
    fields = msgspec.to_builtins(message) | {"version": version}
    return _encoder.encode({name: value for name, value in fields.items() if FIRST_IN.get(name, 1) <= version})


def kind_of(version: int) -> str:
    """Name messages of a version, for the header that people see in the management console."""
    return f"matins.work.v{version}"


def decode(body: bytes) -> WorkMessage:
    """Read a message.

    Raises NewerMessage for a later version, UnreadableMessage for anything else that is not a work message.
    """
    if len(body) > MAXIMUM_BYTES:
        problem = f"{len(body)} bytes; at most {MAXIMUM_BYTES} are accepted"
        raise UnreadableMessage(problem)
    try:
        version = _version_decoder.decode(body).version
        if version > MESSAGE_VERSION:
            problem = f"version {version}; this release reads versions up to {MESSAGE_VERSION}"
            raise NewerMessage(problem)
        message = _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableMessage(str(error)[:500]) from error
    if not all(EARLIEST <= instant <= LATEST for instant in (message.scheduled_at, message.published_at)):
        problem = f"an instant outside of {EARLIEST:%Y} to {LATEST:%Y}"
        raise UnreadableMessage(problem)
    if any("\0" in account for account in message.accounts):
        problem = "an account's id holds a NUL character, so no ledger row can be meant"
        raise UnreadableMessage(problem)
    return message
