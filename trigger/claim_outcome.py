"""Who claims, what a claim is, and how an attempt can end."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from schemas.audit import ActorKind
from schemas.occurrence import Identity
from shared.calls import Window


@dataclass(frozen=True, slots=True)
class Claimant:
    """Who attempts: the instance's id and region, for how long a claim's lease lasts.

    `host` is where a command runs; None for a process of the fleet, whose host stands beside its id.
    """

    instance: str
    region: str
    lease: timedelta
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Fired:
    """Who has an occurrence run by hand or from outside, and why: `kind` says whether `by` is a person or a caller."""

    by: str
    reason: str | None = None
    kind: ActorKind = "operator"


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
    due_at: datetime
    trace_context: str

    @property
    def lag(self) -> timedelta:
        """How long after it was due it was claimed."""
        return self.claimed_at - self.due_at


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
class Ended:
    """An occurrence whose dispatch was ended, so that a later one can start; its rows are to be cancelled."""

    id: int
    scheduled_at: datetime


@dataclass(frozen=True, slots=True)
class Overlapped:
    """An occurrence of the job that still runs is in the way.

    A scheduled instant was recorded as skipped, or `waits` for the end of the active one; with `cancel_previous` this
    attempt has ended the dispatch of `ended`.
    """

    active: str
    waits: bool = False
    ended: tuple[Ended, ...] = ()


@dataclass(frozen=True, slots=True)
class Stale:
    """Another definition of the job is current, or the job was retired."""

    revision: int | None


@dataclass(frozen=True, slots=True)
class NotDue:
    """The named instant is not due by the database's clock, or there is no such occurrence (`known` is False)."""

    known: bool


@dataclass(frozen=True, slots=True)
class Pruned:
    """The named instant is older than what is retained: nothing due before `retained_from` runs any more."""

    retained_from: datetime


@dataclass(frozen=True, slots=True)
class OnHold:
    """Everything is held, since the database may have been put back."""

    reason: str


@dataclass(frozen=True, slots=True)
class Paused:
    """The job is paused since `since`: nothing of its schedule is claimed, by hand or from outside either."""

    since: datetime
    reason: str | None


@dataclass(frozen=True, slots=True)
class Foreign:
    """The job runs elsewhere and only checks in: nothing of it is claimed here."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing was there to claim; what was due has been recorded (`more` asks for another pass at once)."""

    more: bool = False


ClaimOutcome = Won | Held | Overlapped | Stale | Nothing
FireOutcome = Won | Held | Overlapped | Stale | NotDue | Pruned | OnHold | Paused | Foreign
