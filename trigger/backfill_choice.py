"""What a backfill does with each past instant of a range: run it, run it again, or leave it, and why. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Mode = Literal["missing", "failed", "all"]
Action = Literal["run", "rerun", "leave"]
MOST_ACTIVE = 100
MEANT = {"run": "run", "rerun": "run again", "leave": "leave"}

# Skipped for good: such an instant is not due under any definition that counts, or its work was another one's.
_NOT_DUE = frozenset({"superseded", "calendar"})
_NEVER_RAN = frozenset({"missed", "skipped", "coalesced"})
_UNSUCCESSFUL = frozenset({"partial", "failed", "cancelled"})
_AS_IT_IS = {
    "expected": "waits to run by itself",
    "claimed": "runs already",
    "running": "runs already",
    "succeeded": "succeeded, and is never run again",
}


@dataclass(frozen=True, slots=True)
class Past:
    """An instant and what became of it: `state` and `reason` of its row, and the row's id; None where there is no row.

    `pruned`: it is older than what is retained.
    """

    scheduled_at: datetime
    id: int | None = None
    state: str | None = None
    reason: str | None = None
    generation: int = 0
    pruned: bool = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is done with an instant, and why, in words for the person who asked."""

    past: Past
    action: Action
    why: str


def choose(past: Past, mode: Mode) -> Chosen:
    """Decide about one instant. An occurrence that has succeeded is never run again, whatever the mode."""
    action, why = _choice(past, mode)
    return Chosen(past, action, why)


def _choice(past: Past, mode: Mode) -> tuple[Action, str]:
    told = f"{past.state}: {past.reason}" if past.reason else str(past.state)
    if past.pruned:
        return "leave", "older than what is retained"
    if past.state is None:
        return _never_ran("was never planned", mode)
    if past.state in _NEVER_RAN:
        return ("leave", f"{told}, so it is not due") if past.reason in _NOT_DUE else _never_ran(told, mode)
    if past.state in _UNSUCCESSFUL:
        return ("leave", f"{told}, and --mode missing leaves what ran") if mode == "missing" else ("rerun", told)
    return "leave", _AS_IT_IS[past.state]


def _never_ran(told: str, mode: Mode) -> tuple[Action, str]:
    return ("leave", f"{told}, and --mode failed leaves what never ran") if mode == "failed" else ("run", told)
