"""The fleet: as many triggers and workers as are wanted; who ends is replaced, as in production."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import anyio

from tests.soak.arrows import statement_name
from tests.soak.place import AWAY, Place, rss_megabytes
from tests.support.processes import Service

Kind = Literal["trigger", "worker"]
ASKED_TO_END = "asked to end"
END_SECONDS = 30.0


@dataclass(slots=True)
class Member:
    """A process of the fleet; `spared` says why its end is expected, '' while it isn't."""

    service: Service
    version: int
    spared: str = ""
    frozen: bool = False
    ended: bool = False

    @property
    def kind(self) -> str:
        return self.service.kind


@dataclass(slots=True)
class Crew:
    """The fleet. `exits` counts how processes ended, `crashes` where the killed ones were."""

    place: Place
    wanted: dict[str, int] = field(default_factory=lambda: {"trigger": 2, "worker": 3})
    members: list[Member] = field(default_factory=list)
    exits: Counter[str] = field(default_factory=Counter)
    crashes: Counter[str] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)
    started: int = 0

    def alive(self, kind: str) -> list[Member]:
        """Give those that run and were not asked to end, the oldest first; frozen ones too."""
        return [one for one in self.members if one.kind == kind and one.service.alive and one.spared != ASKED_TO_END]

    def choose(self, kind: str, whom: float) -> Member | None:
        """Give the one that a number from 0 to 1 falls on."""
        there = [one for one in self.alive(kind) if not one.frozen]
        return there[int(whom * len(there))] if there else None

    def supervise(self) -> None:
        """Note who has ended, and start or end processes until there are as many as are wanted."""
        for one in self.members:
            if not one.service.alive and not one.ended:
                one.ended = True
                self._note_end(one)
        self.members = [one for one in self.members if not one.ended]
        for kind, wanted in self.wanted.items():
            there = self.alive(kind)
            for _ in range(wanted - len(there)):
                self.start(kind)
            for one in [member for member in there if not member.frozen][wanted:]:
                self.stop(one)

    def start(self, kind: str) -> Member:
        """Start one more; every third goes to each server through a wire."""
        wires = {}
        if self.started % 3 == 1:
            wires["broker_url"] = self.place.broker_wire.url
        if self.started % 3 == 2:
            wires["database_url"] = self.place.database_wire.url
        self.started += 1
        member = Member(self.place.deployment.start(kind, **wires), self.place.version)
        self.members.append(member)
        return member

    def stop(self, member: Member) -> None:
        """Ask one to end in order, once: a second signal would end it at once."""
        if not member.frozen and not member.spared:
            member.spared = ASKED_TO_END
            member.service.terminate()

    def freeze(self, member: Member) -> None:
        member.frozen = True
        member.service.freeze()

    def go_on(self, member: Member) -> None:
        member.frozen = False
        if member.service.alive:
            member.service.go_on()

    async def kill(self, member: Member) -> None:
        """End one with SIGKILL, and count where it was: it is frozen for that, and its sessions are looked at."""
        member.spared = "killed"
        member.service.freeze()
        try:
            at = await self._whereabouts(member)
        finally:
            member.service.kill()
        self.crashes[f"{member.kind}: {at}"] += 1

    async def _whereabouts(self, member: Member) -> str:
        starting = member.service.lines("starting")
        if not starting:
            return "starting"
        try:
            async with self.place.session() as session:
                rows = await session.fetch(
                    """select query, state from pg_stat_activity
                        where application_name like '%' || $1 and backend_type = 'client backend' and state <> 'idle'
                        order by state_change""",
                    str(starting[0]["instance"])[:8],
                )
        except AWAY:
            return "without a database"
        if not rows:
            return "between two transactions"
        named = {(row["state"] == "active", statement_name(row["query"])) for row in rows}
        return ", ".join(f"{'in' if active else 'behind'} {name}" for active, name in sorted(named))

    def _note_end(self, one: Member) -> None:
        code = one.service.popen.returncode
        # An account may end its worker in the moment in which it is about to be killed.
        expected = {"killed": {-9, -6}, ASKED_TO_END: {0, 1, -6}, "": {-6}}[one.spared]
        if not one.service.lines("starting"):
            # Nobody listens to signals while the modules are imported.
            expected.add(-15)
        how = one.spared or ("killed by its account" if code == -6 else "ended by itself")
        self.exits[f"{one.kind} {how}: {code}"] += 1
        if code not in expected:
            self.unexpected.append(f"{one.service.log.name}: {how}, exit code {code}")

    async def end(self) -> list[str]:
        """Ask all to end in order, and wait for it; give the names of those that still run."""
        self.wanted = dict.fromkeys(self.wanted, 0)
        for one in self.members:
            self.stop(one)
        with anyio.move_on_after(END_SECONDS):
            while True:
                self.supervise()
                if not self.members:
                    break
                await anyio.sleep(0.2)
        return [one.service.log.name for one in self.members]

    def memory(self) -> float:
        """Give the megabytes of the largest process."""
        return max((rss_megabytes(one.service.popen.pid) for one in self.members), default=0.0)
