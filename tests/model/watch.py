"""What must hold at every moment, seen from what the product's statements gave back."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from schemas.message import WorkMessage

# The database's clock runs ahead of the model's own by a microsecond for each look.
SLACK = timedelta(milliseconds=10)
# The model's `catch_up_within`.
LATEST = timedelta(minutes=45)

if TYPE_CHECKING:
    from tests.model.database import ModelSession
    from tests.model.process import Process
    from tests.model.world import World


@dataclass(eq=False, slots=True)
class Watch:
    """Remembers who started what, and which occurrences are ending."""

    world: "World"
    claims: set[int] = field(default_factory=set)
    epochs: dict[int, int] = field(default_factory=dict)
    holders: dict[tuple[int, str], tuple[str, int]] = field(default_factory=dict)
    heard: dict[tuple[int, str], datetime] = field(default_factory=dict)
    ending: dict[int, int] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    not_before: dict[tuple[int, str], Any] = field(default_factory=dict)
    open_starts: dict[tuple[int, str], list["Process"]] = field(default_factory=dict)
    blamed: dict[tuple[int, str], int] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    # How late each due instant was when a process last looked at it: by its due time, or the end of its wait.
    late: dict[tuple[str, int], timedelta] = field(default_factory=dict)
    paused: bool = False

    def count(self, event: str, number: int = 1) -> None:
        """Count what happened."""
        self.events[event] = self.events.get(event, 0) + number

    def saw(self, session: "ModelSession", label: str, args: tuple[Any, ...], result: Any, began: int) -> None:
        """Look at a statement's answer."""
        look = getattr(self, f"_{label}", None)
        if look is not None and result is not None:
            look(session, args, result, began)

    def published(self, message: WorkMessage) -> None:
        """Look at a message on its way."""
        self.world.named.extend((message.occurrence_id, account) for account in message.accounts)

    def runs(self, identity: str, account: str) -> None:
        """Look at a call of the job's code: a retry must not come before its time."""
        self.count("calls")
        occurrence = self.ids.get(identity)
        earliest = self.not_before.get((occurrence, account)) if occurrence else None
        if earliest is not None and self.world.now < earliest - SLACK:
            self.world.violation(f"{account} of {identity} was tried again {earliest - self.world.now} too early")

    def interrupted(self, process: "Process", *, ended: bool) -> None:
        """Blame the end of a process, of its session or its channel, on the accounts whose starts it has open.

        Nothing in the ledger tells them apart.
        """
        for key, holders in self.open_starts.items():
            mine = holders.count(process)
            self.blamed[key] = self.blamed.get(key, 0) + mine
            if ended:
                self.open_starts[key] = [one for one in holders if one is not process]

    def _due_occurrences(self, session: "ModelSession", args: Any, rows: Any, _began: int) -> None:
        for row in rows:
            since = max(row["due_at"], row["waited_until"] or row["due_at"])
            covered = row["covered_by"] is not None
            self.late[session.process.name, row["id"]] = timedelta(0) if covered else args[1] - since

    def _coalesce_occurrences(self, session: "ModelSession", args: Any, _tag: Any, _began: int) -> None:
        for occurrence in args[0]:
            self._decided(session, occurrence)

    def _decided(self, session: "ModelSession", occurrence: int) -> None:
        """See that nothing is run, or run with another, that was missed; the clock goes on before the claim."""
        late = self.late.get((session.process.name, occurrence), timedelta(0))
        if late > LATEST:
            self.world.violation(f"occurrence {occurrence} was decided {late} late")

    def _claim(self, session: "ModelSession", args: Any, row: Any, _began: int) -> None:
        self.count("claims")
        if args[9] is None:
            self._decided(session, row["id"])
        self.world.after_commit(session, self._claimed, row["id"])
        self.world.claimers.append(session.process)
        self._epoch(row)
        self.ids[f"{row['job']}:{row['scheduled_at']:%Y-%m-%dT%H:%MZ}"] = row["id"]

    def _claimed(self, occurrence: int) -> None:
        if occurrence in self.claims:
            self.world.violation(f"occurrence {occurrence} was claimed twice")
        self.claims.add(occurrence)

    def _take_over(self, session: "ModelSession", args: Any, row: Any, _began: int) -> None:
        self.count("takeovers")
        self._epoch(row)

    def _epoch(self, row: Any) -> None:
        if row["epoch"] < self.epochs.get(row["id"], 0):
            self.world.violation(f"the epoch of occurrence {row['id']} went back")
        self.epochs[row["id"]] = row["epoch"]

    def _start_outside(self, session: "ModelSession", args: Any, row: Any, began: int) -> None:
        key = (args[0], args[2])
        self._started(session, key, began)
        if row["allowed"]:
            self.holders[key] = (session.process.name, self.world.turns.line().number)
            self.heard[key] = self.world.now
            self.open_starts.setdefault(key, []).append(session.process)

    def _start_alone(self, session: "ModelSession", args: Any, row: Any, began: int) -> None:
        key = (args[0], args[2])
        self._started(session, key, began)
        if row["allowed"]:
            self.open_starts.setdefault(key, []).append(session.process)

    def _start_rows(self, session: "ModelSession", args: Any, rows: Any, began: int) -> None:
        for row in rows:
            self._started(session, (args[0], row["account"]), began)

    def _started(self, session: "ModelSession", key: tuple[int, str], began: int) -> None:
        self.count("starts")
        if key[0] in self.ending and self.ending[key[0]] < began:
            self.world.violation(f"{key} was started after the dispatch had ended")

    def _settle_outside(self, session: "ModelSession", args: Any, row: Any, _began: int) -> None:
        key = (args[0], args[2])
        self.count("settles")
        holder = self.holders.get(key)
        if holder is not None and holder != (session.process.name, self.world.turns.line().number):
            self.world.violation(f"{key}: {session.process.name} settled what {holder[0]} had taken over")
        self.world.after_commit(session, self._over, session.process, key)
        if args[4] == "pending":
            self.not_before[key] = row["settled_at"] + args[6]
        else:
            self.not_before.pop(key, None)

    def _settle_unsuccessful(self, session: "ModelSession", args: Any, rows: Any, _began: int) -> None:
        for row in rows:
            key = (args[0], row["account"])
            self.world.after_commit(session, self._over, session.process, key)
            if row["state"] == "pending":
                self.world.after_commit(session, self._waits, key, row["settled_at"] + row["wait"])

    def _over(self, process: "Process", key: tuple[int, str]) -> None:
        self.open_starts[key] = [one for one in self.open_starts.get(key, []) if one is not process]

    def _waits(self, key: tuple[int, str], until: Any) -> None:
        self.not_before[key] = until

    def _settle_succeeded(self, session: "ModelSession", args: Any, _tag: Any, _began: int) -> None:
        for account in args[2]:
            self.world.after_commit(session, self._over, session.process, (args[0], account))

    def _undo_start(self, session: "ModelSession", args: Any, _tag: Any, _began: int) -> None:
        self.world.after_commit(session, self._over, session.process, (args[0], args[2]))

    def _cancel_occurrence(self, session: "ModelSession", args: Any, _state: Any, _began: int) -> None:
        self.count("cancels")
        self.world.after_commit(session, self._ends, args[0])

    def _cancel_previous(self, session: "ModelSession", args: Any, rows: Any, _began: int) -> None:
        for row in rows:
            self.count("cancelled for the next")
            self.world.after_commit(session, self._ends, row["id"])

    def _write_standing(self, session: "ModelSession", args: Any, _tag: Any, _began: int) -> None:
        self.count(args[9])
        self.world.after_commit(session, self._stands, args[1] is not None)

    def _stands(self, paused: bool) -> None:  # noqa: FBT001 - what was written
        self.paused = paused

    def _choose_backfilled(self, _session: "ModelSession", args: Any, _tag: Any, _began: int) -> None:
        self.count("backfilled", len(args[1]))

    def _fail_left(self, _session: "ModelSession", _args: Any, rows: Any, _began: int) -> None:
        self.count("left behind", len(rows))

    def _open_own(self, _session: "ModelSession", args: Any, _row: Any, _began: int) -> None:
        self.count(f"own {args[5]}")

    def _let_wait(self, _session: "ModelSession", _args: Any, _tag: Any, _began: int) -> None:
        self.count("waits")

    def _blocked_accounts(self, _session: "ModelSession", _args: Any, rows: Any, _began: int) -> None:
        self.count("blocked", len(rows))

    def _ends(self, occurrence: int) -> None:
        self.ending[occurrence] = self.world.picks

    def _start_rerun(self, session: "ModelSession", args: Any, row: Any, _began: int) -> None:
        self.count("reruns")
        self.world.after_commit(session, self._reopened, args[0])

    def _reopened(self, occurrence: int) -> None:
        self.ending.pop(occurrence, None)
        for found in (self.not_before, self.blamed):
            for key in [key for key in found if key[0] == occurrence]:
                del found[key]

    def _sweep_expired(self, session: "ModelSession", args: Any, rows: Any, _began: int) -> None:
        self.count("expired", len(rows))
        for row in rows:
            key = (args[0], row["account"])
            self.not_before.pop(key, None)
            silence = self.world.now - self.heard.get(key, self.world.now)
            if silence < self.world.lease - SLACK:
                self.world.violation(f"{key} was taken from a worker that was silent for {silence}")

    def _sweep_lost(self, session: "ModelSession", args: Any, row: Any, _began: int) -> None:
        self.count("lost", row["lost"])
        if row["lost"] and self.world.peaceful:
            self.world.violation(f"{row['lost']} messages were taken for lost, and none was")

    def _mark_published(self, session: "ModelSession", args: Any, tag: Any, _began: int) -> None:
        if tag != "UPDATE 0":
            self.world.marks.append(args)

    def _renew_outside(self, session: "ModelSession", args: Any, _until: Any, _began: int) -> None:
        self.heard[(args[0], args[2])] = self.world.now

    def _plan_occurrences(self, session: "ModelSession", args: Any, _written: Any, _began: int) -> None:
        if "create_job" not in session.said:
            self.world.claimers.append(session.process)

    def _bury(self, session: "ModelSession", args: Any, row: Any, _began: int) -> None:
        self.count("buried")
        key = (args[0], args[2])
        # Copies that have counted their starts and not yet taken the row are taken for dead.
        counted = self.blamed.get(key, 0) + len(self.open_starts.get(key, []))
        self.blamed[key] = max(counted, self.blamed.get(key, 0))
        if counted < args[4]:
            self.world.violation(f"{key} was buried after {counted} starts without an end")
