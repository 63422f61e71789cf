"""Replaying the audit of an occurrence: what it tells must lead, step by step, to what the row says."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tests.support.checker_facts import OccurrenceFacts

ACTIVE = frozenset({"claimed", "running"})
EXPECTED, CLAIMED = frozenset({"expected"}), frozenset({"claimed"})
RERUNNABLE = frozenset({"partial", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Step:
    """A kind of audit row: the states that it may follow, the one that it leads to, and whether it raises the epoch."""

    after: frozenset[str]
    to: str | None = None
    epoch: bool | Literal["told"] = False


# An occurrence that nobody has claimed is skipped by a cancel; see `Replay.step`.
STEPS = {
    "claim": Step(EXPECTED, "claimed", epoch=True),
    "takeover": Step(CLAIMED, epoch=True),
    "fan_out_failed": Step(CLAIMED, epoch="told"),
    "released": Step(CLAIMED),
    "sealed": Step(CLAIMED, "running"),
    "cancel": Step(ACTIVE | EXPECTED, epoch=True),
    "ending": Step(ACTIVE, epoch=True),
    "closed": Step(ACTIVE, "closed"),
    "rerun": Step(RERUNNABLE, "open", epoch=True),
    "skipped": Step(EXPECTED, "skipped"),
    "missed": Step(EXPECTED, "missed"),
    "coalesced": Step(EXPECTED, "coalesced"),
    "expected": Step(frozenset({"skipped", "coalesced", "missed"}), "expected"),
}


@dataclass(slots=True)
class Replay:
    """Where an occurrence stands after the events so far."""

    state: str = "expected"
    generation: int = 1
    epoch: int = 0
    sealed: bool = False

    def step(self, kind: str, detail: Mapping[str, Any]) -> bool:
        """Take an event in, and tell whether it fits; a kind that says nothing of the row's state always does."""
        step = STEPS.get(kind)
        if step is None:
            return True
        fits = self.state in step.after
        raises = step.epoch if step.epoch != "told" else "epoch" in detail or detail.get("ending") is not None
        self.epoch += int(raises)
        self.generation += int(kind == "rerun")
        self.sealed |= kind == "sealed"
        self.state = self._next(kind, step, detail)
        told = {name: detail.get(name, getattr(self, name)) for name in ("epoch", "generation", "state")}
        return fits and told == {name: getattr(self, name) for name in told}

    def _next(self, kind: str, step: Step, detail: Mapping[str, Any]) -> str:
        if kind == "cancel" and self.state == "expected":
            return "skipped"
        match step.to:
            case None:
                return self.state
            case "closed":
                return str(detail["state"])
            case "open":
                return "running" if self.sealed else "claimed"
            case state:
                return state


def contradictions(one: OccurrenceFacts) -> Iterator[str]:
    """Say where the audit of an occurrence contradicts itself or the row."""
    if one.row["elsewhere"]:
        yield from _reported(one)
        return
    replay, row = Replay(), one.row
    for number, event in enumerate(one.events, start=1):
        before = str(replay)
        if not replay.step(event.kind, event.detail):
            yield f"event {number}, {event.kind} {dict(event.detail)}, after {before}"
    told, found = (
        (replay.state, replay.generation, replay.epoch, replay.sealed),
        (row["state"], row["generation"], row["epoch"], row["sealed_at"] is not None),
    )
    # What a later definition takes back is told once for all its instants; what a calendar leaves out is planned so.
    if told != found and not (row["reason"] in ("superseded", "calendar") and told == ("expected", *found[1:])):
        yield f"(state, generation, epoch, sealed) {told} told, {found} on the row"


def _reported(one: OccurrenceFacts) -> Iterator[str]:
    """Say where a report from elsewhere does not begin where the row stood, or the last not end where it stands."""
    state = "expected"
    for number, event in enumerate(one.events, start=1):
        if event.detail.get("refused") is not None:
            continue
        step = STEPS.get(event.kind)
        planned = state if step is None or step.to is None else step.to
        before, after = event.detail.get("before", state), event.detail.get("after", planned)
        if before != state:
            yield f"event {number}, {event.kind} {dict(event.detail)}, after {state}"
        state = after
    row = one.row
    if state != row["state"] and row["reason"] not in {"superseded", "calendar"}:
        yield f"{state} told, {row['state']} on the row"
