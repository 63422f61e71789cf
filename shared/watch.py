"""What the watch looks for: detectors, each of which compares what should have happened with what did.

A detector is a module with a function `look` and the kinds of alert that it judges. What it finds is opened as an
alert, once whoever sees it first; an alert of its kinds that it no longer finds is closed.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from schemas.occurrence import format_instant
from shared.postgres import Session


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is out of order now: a kind of `schemas.alert.KINDS`, and what it is about.

    `subject` is an occurrence's name, a job's, or an instance's id, as the kind says. `told` is one sentence of what
    was expected and what is known; `detail` the same for machines, JSON-able, instants as text. `detail["generation"]`
    tells apart what has happened to one occurrence several times: acknowledged, the same is not opened again.
    """

    kind: str
    subject: str
    told: str
    job: str | None = None
    occurrence_id: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


Look: TypeAlias = Callable[[Session, datetime | None], Awaitable[Sequence[Finding]]]


@dataclass(frozen=True, slots=True)
class Detector:
    """Finds, at each pass, everything of its `kinds` that is out of order, whether it is new or not.

    `look` takes a session, within the pass's transaction, and what stands for the database's clock in tests, None
    otherwise; it must ask by an index, and for no more than is out of order.
    """

    name: str
    kinds: frozenset[str]
    look: Look


def written(instant: datetime) -> str:
    """Write an instant for a finding, in UTC, to the second."""
    return format_instant(instant.replace(microsecond=0))


def counted(number: int, kind: str) -> str:
    """Say how many processes of a kind live."""
    return f"{number} {kind}s live" if number > 1 else f"{number or 'no'} {kind} lives"
