"""Who claims, what a claim is, and how an attempt can end."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from schemas.occurrence import Identity
from shared.calls import Window


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who attempts: the instance's id and region, for how long a claim's lease lasts."""

    instance: str
    region: str
    lease: timedelta


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed occurrence as its holder goes on with it; `epoch` fences every later write."""

    id: int
    identity: Identity
    window: Window
    generation: int
    epoch: int
    cursor: str | None
    accounts_read: int
    fan_out_attempts: int
    claimed_at: datetime
    trace_context: str


@dataclass(frozen=True, slots=True)
class Won:
    """This attempt claimed the occurrence."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Held:
    """The instant is decided: `state`, since when and by which instance it was claimed, or the reason of its end."""

    scheduled_at: datetime
    state: str
    claimed_by: str | None
    claimed_at: datetime | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Overlapped:
    """An occurrence of the job that still runs is in the way; a scheduled instant was recorded as skipped."""

    active: str


@dataclass(frozen=True, slots=True)
class Stale:
    """Another definition of the job is current, or the job was retired."""

    revision: int | None


@dataclass(frozen=True, slots=True)
class NotDue:
    """The named instant is not due by the database's clock, or there is no such occurrence (`known` is False)."""

    known: bool


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing was there to claim; what was due has been recorded (`more` asks for another pass at once)."""

    more: bool = False


ClaimOutcome = Won | Held | Overlapped | Stale | Nothing
FireOutcome = Won | Held | Overlapped | Stale | NotDue
