"""Verifying the audit trail: every link of its chain is computed again, in one reading of the database, by pages.

It finds rows that were altered or taken away, rows that were put where all was sealed already, and links that do not
follow from one another. What is not sealed yet is only counted. That the end was cut off, with its links and batches,
nothing inside of the database can show: for that the head has to be kept elsewhere, as an anchor.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from schemas.audit import FORGOTTEN, GENESIS, PRUNED, digest, link
from shared.postgres import Session
from shared.sql_files import statement
from shared.terminal import Refused
from trigger.seal_audit import CHAIN_HEAD, is_elsewhere, server_of
from trigger.unchained_audit import Unchained, Unsealed, drawn_before

CHAIN_PAGE = statement("trigger", "chain_page")
SEALS_PAGE = statement("trigger", "seals_page")
AUDIT_RECORDS = statement("trigger", "audit_records")

PAGE = 2000
MOST_TOLD = 20

What = Literal["altered", "removed", "inserted", "broken", "anchor"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, in words; `audit_id` and `position` where it has them."""

    what: What
    told: str
    audit_id: int | None = None
    position: int | None = None


@dataclass(slots=True)
class Verified:
    """What was found. `problems` are the first MOST_TOLD, `found` is how many there are in all.

    The chain reaches from behind `pruned_through` (0: from the beginning) to `position`, whose link is `hash`.
    """

    pruned_through: int = 0
    position: int = 0
    hash: bytes = GENESIS
    rows: int = 0
    redacted: int = 0
    unsealed: Unsealed = field(default_factory=Unsealed)
    anchors: int = 0
    problems: list[Problem] = field(default_factory=list)
    found: int = 0

    def note(self, problem: Problem) -> None:
        """Keep a problem, or only count it."""
        self.found += 1
        if len(self.problems) < MOST_TOLD:
            self.problems.append(problem)


async def verify(session: Session, anchors: Mapping[int, bytes]) -> Verified:
    """Verify the whole trail, and that each anchor is a head of this very chain.

    Raises Refused when no anchor is of what is still kept.
    """
    server = await server_of(session)
    async with session.transaction(isolation="repeatable_read", readonly=True):
        head: Any = await session.fetchrow(CHAIN_HEAD)
        verified = Verified()
        pruned = await session.fetch(AUDIT_RECORDS, PRUNED)
        if pruned:
            detail = pruned[-1]["detail"]
            verified.pruned_through, verified.hash = detail["position"], bytes.fromhex(detail["hash"])
            verified.position = verified.pruned_through
        _refuse_old(anchors, verified)
        await _Walk(session, verified, anchors).run()
        _compare_end(verified, head, anchors)
        judged = head["number"] > 0 and not head["first_look"] and not is_elsewhere(head, server)
        async for row, why in Unchained(session, head if judged else None, verified.unsealed).rows():
            verified.note(Problem("inserted", f"{_named(row)} was inserted: {why}", row["id"]))
    return verified


@dataclass(slots=True)
class _Walk:
    """Going along the chain; `seal` is the batch that is being read, and `highest` the largest id of those before."""

    session: Session
    verified: Verified
    anchors: Mapping[int, bytes]
    seals: list[Any] = field(default_factory=list)
    seal: Any = None
    highest: int = 0
    redactions: dict[int, str] | None = None

    async def run(self) -> None:
        """Read every page."""
        while rows := await self.session.fetch(CHAIN_PAGE, self.verified.position, PAGE):
            for row in rows:
                self._link(row)
                await self._content(row)
                await self._batch(row)
                self.verified.position, self.verified.hash = row["position"], row["hash"]
                self.verified.rows += 1

    def _link(self, row: Any) -> None:
        """See that the link follows the one before; where some are missing it is taken as it stands."""
        verified, position = self.verified, row["position"]
        if position != verified.position + 1:
            told = f"{verified.position + 1}" + (f" to {position - 1}" if position > verified.position + 2 else "")
            verified.note(Problem("removed", f"position {told} of the chain was removed", None, verified.position + 1))
        elif link(verified.hash, row["digest"]) != row["hash"]:
            told = f"position {position} of the chain, of row {row['audit_id']}, does not follow from the one before"
            verified.note(Problem("broken", told, row["audit_id"], position))
        anchored = self.anchors.get(position)
        if anchored is not None and anchored != row["hash"]:
            told = f"position {position} of the chain is not what the anchor says: it was written anew"
            verified.note(Problem("anchor", told, row["audit_id"], position))

    async def _content(self, row: Any) -> None:
        position, audit_id = row["position"], row["audit_id"]
        if row["id"] is None:
            told = f"row {audit_id} was removed: position {position} of the chain has no row"
            self.verified.note(Problem("removed", told, audit_id, position))
        elif row["salt"] is not None:
            if digest(dict(row), row["salt"]) != row["digest"]:
                self._altered(row)
        elif digest(dict(row), b"").hex() == (await self._redacted()).get(audit_id):
            self.verified.redacted += 1
        else:
            self._altered(row)

    def _altered(self, row: Any) -> None:
        told = f"{_named(row)} was altered: it is not what was sealed at position {row['position']} of the chain"
        self.verified.note(Problem("altered", told, row["audit_id"], row["position"]))

    async def _batch(self, row: Any) -> None:
        """See that a batch's head is the chain's, and that no row has an id that was drawn before it was begun."""
        if self.seal is None or row["position"] > self.seal["position"]:
            await self._next_seal(row["position"])
        seal = self.seal
        if seal is None:
            return
        if row["position"] == seal["position"] and row["hash"] != seal["hash"]:
            told = f"batch {seal['number']} had another head than position {row['position']} of the chain has"
            self.verified.note(Problem("broken", told, row["audit_id"], row["position"]))
        if row["id"] is not None and row["id"] <= self.highest:
            past = await drawn_before(self.session, seal["era"], row, seal["number"])
            if past is not None:
                told = f"{_named(row)} was inserted: position {past} was sealed, with a later id, before it was begun"
                self.verified.note(Problem("inserted", told, row["id"], row["position"]))

    async def _next_seal(self, position: int) -> None:
        if self.seal is not None:
            self.highest = self.seal["highest_id"]
        number = 0 if self.seal is None else self.seal["number"]
        self.seals = [one for one in self.seals if one["position"] >= position]
        if not self.seals:
            self.seals = await self.session.fetch(SEALS_PAGE, number, position - 1, PAGE)
        self.seal = self.seals.pop(0) if self.seals else None

    async def _redacted(self) -> dict[int, str]:
        """Give the digests of redacted rows as `forget-account` has recorded them, the last of each."""
        if self.redactions is None:
            self.redactions = {
                one["id"]: one["digest"]
                for entry in await self.session.fetch(AUDIT_RECORDS, FORGOTTEN)
                for one in entry["detail"].get("redacted", [])
            }
        return self.redactions


def _refuse_old(anchors: Mapping[int, bytes], verified: Verified) -> None:
    kept = [position for position in anchors if position >= verified.pruned_through]
    if anchors and not kept:
        raise Refused(f"--anchor: the trail is pruned through position {verified.pruned_through}; name a later one")
    verified.anchors = len(kept)
    if anchors.get(verified.pruned_through, verified.hash) != verified.hash:
        told = f"the trail is pruned through position {verified.pruned_through}, which is not what the anchor says"
        verified.note(Problem("anchor", told, None, verified.pruned_through))


def _compare_end(verified: Verified, head: Any, anchors: Mapping[int, bytes]) -> None:
    if verified.position < head["position"]:
        told = (
            f"the chain ends at position {verified.position}, and its last batch at {head['position']}: it was cut off"
        )
        verified.note(Problem("removed", told, None, verified.position + 1))
    elif verified.position > head["position"]:
        told = f"the chain ends at position {verified.position}, and its last batch at {head['position']}"
        verified.note(Problem("broken", told, None, head["position"] + 1))
    last = max(anchors, default=0)
    if last > verified.position:
        told = f"the chain ends at position {verified.position}, and the anchor is position {last}: its end was cut off"
        verified.note(Problem("anchor", told, None, verified.position + 1))


def _named(row: Any) -> str:
    of = f" of {row['job']}" if row["job"] else ""
    return f"row {row['id']} ({row['kind']}{of}, {row['at']:%Y-%m-%d %H:%M:%S}Z)"
