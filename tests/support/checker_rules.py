"""The rules that hold of every night, whatever went wrong in it: pure functions from a snapshot to what breaks them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, pairwise
from typing import Any

from shared.declaration import FaultyDeclaration
from shared.errors import DeclarationError
from shared.schedule_definition import schedule_of
from tests.support.checker_audit import contradictions
from tests.support.checker_facts import OccurrenceFacts, Snapshot

# Each rule, and the invariant of the drill book that it belongs to.
INVARIANTS = {
    "due instant without a row": "I1",
    "due instant twice": "I1",
    "row off the schedule": "I1",
    "not one win": "I1",
    "two active at once": "I1",
    "claimed before it was due": "I1",
    "account twice": "I2",
    "account without a row": "I2",
    "row without its occurrence": "I2",
    "row of another instant": "I2",
    "row of a later generation": "I2",
    "rows beyond the fan-out": "I2",
    "effect missing": "I3",
    "second effect": "I3",
    "effect without success": "I3",
    "counts do not add up": "I4",
    "state does not follow from the counts": "I4",
    "open row in a closed occurrence": "I4",
    "counts are not those of the rows": "I5",
    "report is not what the rows say": "I5",
    "not over": "I6",
    "message left": "I6",
    "message without its row": "I6",
    "dead without its parked message": "I6",
    "terminal state left": "I7",
    "no such move": "I7",
    "total changed": "I7",
    "generation out of order": "I7",
    "row deleted": "I7",
    "audit does not lead to the row": "I8",
    "try missing": "I8",
    "tries taken back": "I8",
    "two tries at once": "I8",
    "epoch lowered": "I9",
    "state moved without the epoch": "I9",
    "taken without an epoch": "I9",
    "session left in a transaction": "I10",
    "lock left": "I10",
    "connection left": "I10",
    "process left": "I10",
    "process did not end in order": "I10",
    "secret told": "I13",
}
ENDINGS = {"cancel": "cancelled", "fan_out": "failed", "deadline": "partial"}
COUNTS = ("succeeded", "failed", "dead", "cancelled")
CLOSED = frozenset({"succeeded", "partial", "failed", "cancelled"})
# A report tells of at most so many classes.
CLASSES = 100
# So many due instants of a job are compared with its rows, the latest ones.
INSTANTS = 5000


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that does not hold: of which row, and what was seen."""

    rule: str
    row: str
    seen: str

    @property
    def invariant(self) -> str:
        """The invariant of the drill book: I1 to I13."""
        return INVARIANTS[self.rule]

    def __str__(self) -> str:
        return f"{self.invariant} {self.rule}: {self.row}: {self.seen}"


def judge(snapshot: Snapshot) -> Iterator[Violation]:
    """Give what breaks a rule that holds at every moment."""
    yield from judge_history(snapshot)
    yield from judge_plan(snapshot)
    for one in snapshot.occurrences:
        yield from judge_audit(one)
        yield from judge_claim(one)
        if one.kept:
            yield from judge_fan_out(one)
            yield from judge_close(one)
    yield from judge_rows(snapshot)
    yield from judge_effects(snapshot)


def judge_history(snapshot: Snapshot) -> Iterator[Violation]:
    """Tell of forbidden writes that were seen when they were made."""
    for fault in snapshot.faults:
        before, after = fault["before"], fault["after"] or {}
        changed = {name: (value, after.get(name)) for name, value in before.items() if value != after.get(name)}
        told = ", ".join(f"{name} {old!r} to {new!r}" for name, (old, new) in changed.items())
        yield Violation(fault["rule"], snapshot.named(fault), told[:300])


def judge_plan(snapshot: Snapshot) -> Iterator[Violation]:
    """Compare every due instant of every job, by the definition of its time, with the rows."""
    rows: dict[str, list[datetime]] = {}
    for one in snapshot.occurrences:
        if one.row["variant"] == "":
            rows.setdefault(one.row["job"], []).append(one.row["scheduled_at"])
    for job in snapshot.jobs:
        there = rows.get(job["name"], [])
        until = min(snapshot.now, job["planned_through"])
        due, ever = _due(snapshot, job, until)
        for instant in sorted(due - set(there)):
            yield Violation("due instant without a row", f"{job['name']} {instant:%Y-%m-%dT%H:%M:%SZ}", "no row")
        for instant in sorted({one for one in there if there.count(one) > 1}):
            yield Violation("due instant twice", f"{job['name']} {instant:%Y-%m-%dT%H:%M:%SZ}", "more than one row")
        for instant in sorted(set(there) - ever):
            if job["known_since"] < instant <= until and len(ever) < INSTANTS:
                yield Violation("row off the schedule", job["name"], instant.isoformat())


def _due(snapshot: Snapshot, job: Mapping[str, Any], until: datetime) -> tuple[set[datetime], set[datetime]]:
    """Give the instants that must have a row, and those that any definition so far would allow one for."""
    revisions = [one for one in snapshot.revisions if one["job"] == job["name"]]
    starts = [job["known_since"], *(one["effective_from"] for one in revisions[1:])]
    due: set[datetime] = set()
    ever: set[datetime] = set()
    end = min(until, job["retired_at"] or until)
    for revision, (since, upto) in zip(revisions, pairwise([*starts, end]), strict=True):
        if revision["definition"].get("coordination") == "every":
            # Written by each worker when it is due, never ahead.
            continue
        try:
            schedule = schedule_of(revision["definition"]["schedule"])
        except (DeclarationError, FaultyDeclaration):
            continue
        named = schedule.named(since, min(upto, end)) if since < min(upto, end) else ()
        due |= {one.instant for one in islice(named, INSTANTS)}
        ever |= {one.instant for one in islice(schedule.named(job["known_since"], until), INSTANTS)}
    return due, ever


def judge_claim(one: OccurrenceFacts) -> Iterator[Violation]:
    """One attempt has won an occurrence that was claimed, and none another; and it was due by then.

    Nobody attempts what runs elsewhere.
    """
    wins, claimed = one.row["wins"], one.row["claimed_at"] is not None
    if wins != int(claimed and not one.row["elsewhere"]):
        yield Violation("not one win", one.name, f"{wins} attempts won it, state {one.row['state']}")
    if claimed and one.row["claimed_at"] < one.row["due_at"]:
        yield Violation("claimed before it was due", one.name, f"{one.row['claimed_at']}, due {one.row['due_at']}")


def judge_audit(one: OccurrenceFacts) -> Iterator[Violation]:
    """Replay what the audit tells: each step follows from the one before, and the last is what the row says."""
    for contradiction in contradictions(one):
        yield Violation("audit does not lead to the row", one.name, contradiction)


def judge_fan_out(one: OccurrenceFacts) -> Iterator[Violation]:
    """The rows are those that the fan-out has read, each at a place of its own."""
    rows, places, last = one.counted["rows"], one.counted["positions"], one.counted["last_position"]
    if rows > one.row["accounts_read"] or last > one.row["accounts_read"] or places != rows:
        seen = f"{rows} rows at {places} places up to {last}, {one.row['accounts_read']} accounts read"
        yield Violation("rows beyond the fan-out", one.name, seen)


def judge_close(one: OccurrenceFacts) -> Iterator[Violation]:
    """A closed occurrence is what its rows are: the counts, the sum, the state and the report."""
    row, counted = one.row, one.counted
    if row["state"] not in CLOSED:
        if row["total"] is not None:
            yield Violation("counts do not add up", one.name, f"total {row['total']} in state {row['state']}")
        return
    if counted["open"]:
        yield Violation("open row in a closed occurrence", one.name, f"{counted['open']} open")
    kept = {name: row[name] for name in COUNTS}
    if row["total"] != sum(kept.values()) or row["total"] != counted["rows"]:
        yield Violation("counts do not add up", one.name, f"total {row['total']}, {kept}, {counted['rows']} rows")
    found = {name: counted[name] for name in COUNTS}
    if kept != found:
        yield Violation("counts are not those of the rows", one.name, f"{kept} on the row, {found} in the ledger")
    if row["state"] != (state := _state(row)):
        yield Violation("state does not follow from the counts", one.name, f"{row['state']} for {kept}: {state}")
    yield from _judge_report(one, found)


def _state(row: Mapping[str, Any]) -> str:
    if row["ending"] is not None:
        return ENDINGS[row["ending"]]
    bad = row["failed"] + row["dead"] + row["cancelled"]
    if bad == 0 or bad <= (row["partial_ok"] or 0) * row["total"]:
        return "succeeded"
    return "partial" if row["succeeded"] else "failed"


def _judge_report(one: OccurrenceFacts, found: Mapping[str, int]) -> Iterator[Violation]:
    report = one.row["report"]
    told = {
        "counts": {name: report["counts"].get(name, 0) for name in COUNTS},
        "nothing_to_do": report.get("nothing_to_do", 0),
        "retries": report.get("retries", 0),
        "classes": {(c["state"], c["error_class"]): c["accounts"] for c in report.get("error_classes", [])},
        "generations": [g["generation"] for g in report.get("generations", [])],
    }
    true = {
        "counts": dict(found),
        "nothing_to_do": one.counted["nothing_to_do"],
        "retries": one.counted["retries"],
        "classes": dict(one.errors) if len(one.errors) < CLASSES else told["classes"],
        "generations": list(range(1, one.row["generation"])),
    }
    wrong = {name: f"{told[name]}, in truth {true[name]}" for name in told if told[name] != true[name]}
    if wrong:
        yield Violation("report is not what the rows say", one.name, str(wrong)[:300])


def judge_rows(snapshot: Snapshot) -> Iterator[Violation]:
    """Tell of ledger rows that contradict themselves, their occurrence or one another."""
    for row in snapshot.stray_rows:
        yield Violation(
            row["rule"], snapshot.named(row), f"{row['state']}, {row['attempts']} tries, {row['scheduled_at']}"
        )
    for row in snapshot.twice:
        yield Violation("account twice", snapshot.named(row), f"{row['rows']} rows")


def judge_effects(snapshot: Snapshot) -> Iterator[Violation]:
    """Each account's effect at most once, and exactly once when its row says that it succeeded."""
    for fault in snapshot.effects:
        rule = "effect without success" if fault.effects else "effect missing"
        yield Violation(
            "second effect" if fault.effects > 1 else rule,
            f"{fault.occurrence} {fault.account!r}",
            f"{fault.effects} effects, {fault.state or 'no row'}",
        )


def judge_rest(snapshot: Snapshot, *, due_before: datetime | None, sessions: int) -> Iterator[Violation]:
    """Give what must be over when nothing is at work any more: occurrences, sessions, locks and connections."""
    for one in snapshot.occurrences:
        due = one.row["scheduled_at"] <= (due_before or snapshot.now)
        if one.row["state"] in {"claimed", "running"} or (one.row["state"] == "expected" and due):
            yield Violation("not over", one.name, f"{one.row['state']}, {one.counted['open']} accounts open")
    for found in snapshot.sessions:
        told = f"{found['name']} (pid {found['pid']})"
        if (found["state"] or "").startswith("idle in transaction"):
            yield Violation("session left in a transaction", told, found["query"])
        if found["locks"] or found["waits"]:
            yield Violation("lock left", told, "waits" if found["waits"] else "holds an advisory lock")
    if len(snapshot.sessions) > sessions:
        yield Violation("connection left", f"{len(snapshot.sessions)} sessions", f"at most {sessions} may be left")
