"""One occurrence: how it stands and why, its life step by step, how far it is or how it ended, and who attempted it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from schemas.occurrence import Identity
from schemas.states import ACTIVE
from shared.postgres import Row, Session
from shared.sql_files import statement
from trigger.alerts import open_alerts_of
from trigger.attempts import occurrence_attempts
from trigger.console.counting import Counted, counted
from trigger.console.occurrence_life import KINDS, by_whom, life_of
from trigger.console.occurrence_words import Known, words_of
from trigger.console.place import Asked, Page, Values
from trigger.console.traces import trace_of
from trigger.reach import read_identity, require_occurrence
from trigger.show import facts_of, told_detail
from trigger.standing import standing_of

NEIGHBOURS = statement("trigger.console", "neighbours")
OCCURRENCE_EVENTS = statement("trigger.console", "occurrence_events")
OCCURRENCE_JOB = statement("trigger.console", "occurrence_job")

MOST_EVENTS: Final = 200
MOST_STEPS: Final = 500
MOST_NEIGHBOURS: Final = 5000
NO_REPORT: Final[dict[str, Any]] = {
    "nothing_to_do": 0,
    "retries": 0,
    "durations": None,
    "untouched_examples": [],
    "error_classes": [],
}
DECISIONS: Final = frozenset({"waits", "skipped", "missed", "coalesced"})


@dataclass(frozen=True, slots=True)
class Found:
    """What was read of an occurrence in one view of the database; `steps` and `events` are the latest first."""

    row: Row
    job: Any
    attempts: list[dict[str, Any]]
    alerts: list[dict[str, Any]]
    steps: Sequence[Row]
    events: Sequence[Row]
    neighbours: dict[str, dict[str, Any]]


async def read(asked: Asked) -> Values:
    """Read the page. Raises Refused for an occurrence that there is not."""
    identity = read_identity(asked.path["occurrence"])
    async with (
        asked.place.database.session() as session,
        session.transaction(isolation="repeatable_read", readonly=True),
    ):
        found = await _found(session, identity)
    row, shown = found.row, facts_of(identity, found.row)
    coordination = coordination_of(found.job)
    hosts = {one["instance"]: one["host"] for one in found.attempts if one["host"]}
    because_of = next((str(one["detail"]["because_of"]) for one in found.steps if _says_why(one)), "")
    known = Known(shown, standing_of(found.job), coordination, row["now"], because_of)
    counting = has_accounts(coordination) and row["state"] in ACTIVE
    steps = [dict(one) for one in reversed(found.steps)]
    return {
        "title": str(identity),
        "shown": shown,
        "report": None if shown["report"] is None else NO_REPORT | shown["report"],
        "zone": zone_of(found.job),
        "now": row["now"],
        "coordination": coordination,
        "has_accounts": has_accounts(coordination) and row["opened_at"] is not None,
        "words": words_of(known),
        "alerts": found.alerts,
        "life": life_of(shown, steps, hosts, found.job["effective_from"]),
        "attempts": found.attempts,
        "events": [event_of(one, hosts) for one in reversed(found.events[:MOST_EVENTS])],
        "more_events": len(found.events) > MOST_EVENTS,
        "counted": counted(asked.place, identity, row) if counting else Counted(shown["counts"]),
        "is_counting": counting,
        "before": found.neighbours.get("before"),
        "behind": found.neighbours.get("behind"),
        "trace": trace_of(row["trace_context"], asked.place.settings.trace_url),
    }


async def _found(session: Session, identity: Identity) -> Found:
    row = await require_occurrence(session, identity)
    return Found(
        row,
        await session.fetchrow(OCCURRENCE_JOB, identity.job, row["revision"]),
        (await occurrence_attempts(session, identity))["attempts"],
        await open_alerts_of(session, row["id"]),
        await session.fetch(OCCURRENCE_EVENTS, row["id"], list(KINDS), MOST_STEPS),
        await session.fetch(OCCURRENCE_EVENTS, row["id"], None, MOST_EVENTS + 1),
        await _neighbours(session, identity),
    )


def coordination_of(job: Mapping[str, Any]) -> str:
    """Give who attempts a job's occurrences."""
    return str(job["definition"].get("coordination", "claim"))


def has_accounts(coordination: str) -> bool:
    """Tell whether a job's occurrences have accounts here: what runs elsewhere has none."""
    return coordination != "elsewhere"


def zone_of(job: Mapping[str, Any]) -> str:
    """Give the zone of a job's schedule."""
    return str(job["definition"].get("schedule", {}).get("zone") or "UTC")


async def _neighbours(session: Session, identity: Identity) -> dict[str, dict[str, Any]]:
    """Read the occurrences before and behind one, of its own kind; beside an ad-hoc one, of all."""
    of = (identity.job, identity.scheduled_at, identity.variant)
    rows: Sequence[Row] = await session.fetch(NEIGHBOURS, *of, identity.variant.startswith("+"), MOST_NEIGHBOURS)
    return {
        row["place"]: {
            "occurrence": str(Identity(identity.job, row["scheduled_at"], row["variant"])),
            "scheduled_at": row["scheduled_at"],
            "state": row["state"],
        }
        for row in rows
    }


def _says_why(event: Any) -> bool:
    return event["kind"] in DECISIONS and bool(event["detail"].get("because_of"))


def event_of(row: Any, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Give an entry of the audit trail as it is listed."""
    told = {"at": row["at"], "kind": row["kind"], "reason": row["reason"]}
    return {**told, "by": by_whom(row, hosts), "detail": told_detail(row["detail"])}


PAGE: Final = Page("/occurrences/{occurrence}", "occurrence.html", read, "tonight")
