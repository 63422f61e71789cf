"""Who attempts is changed by a rolling deploy across the due instant: one run, whoever comes when."""

from datetime import datetime
from itertools import permutations

import pytest

from schemas.occurrence import Identity
from shared.postgres import Session
from tests.integration.trigger.support import DAY, DUE, MINUTE, claimant, job_at, live, planned
from trigger.attempting import attempted_now
from trigger.claim import Won, claim_due, claim_one
from trigger.leader import Leadership

SECOND = MINUTE / 60
WAYS = [*permutations(("claim", "leader", "external"), 2)]


class Process:
    """A trigger with its code; for an outside scheduler's job, one that the scheduler calls at each of its passes."""

    def __init__(self, name: str, coordination: str) -> None:
        self.name = name
        self.job = job_at(coordination=coordination)
        self.revision = 0
        self.leadership = Leadership(name, 30 * SECOND)

    async def start(self, session: Session, now: datetime) -> None:
        self.revision = await planned(session, self.job, now, instance=self.name)

    async def tick(self, session: Session, now: datetime) -> bool:
        """Make a pass as the loop does; tell whether it claimed."""
        found = await attempted_now(session, {"nightly": self.job}, claimant(self.name), self.leadership, now=now)
        won: list[object] = [
            await claim_due(session, self.job, self.revision, claimant(self.name), now=now) for _ in found
        ]
        self.leadership.passed()
        if self.job.coordination == "external":
            identity = Identity("nightly", DUE)
            won.append(await claim_one(session, identity, claimant(self.name), fired_by="platform", now=now))
        return any(isinstance(one, Won) for one in won)


async def claims(session: Session) -> int:
    """Count the claims of the night."""
    return int(await session.fetchval("select count(*) from matins.audit where kind = 'claim'"))


@pytest.mark.parametrize(("before", "after"), WAYS)
async def test_the_new_code_comes_after_the_claim(session: Session, before: str, after: str) -> None:
    old, new = Process("old", before), Process("new", after)
    await live(session, "old", "new")
    await old.start(session, DUE - DAY)
    assert await old.tick(session, DUE)
    await new.start(session, DUE + SECOND)
    for seconds in range(1, 40):
        assert not await new.tick(session, DUE + seconds * SECOND)
        assert not await old.tick(session, DUE + seconds * SECOND)
    assert await claims(session) == 1


@pytest.mark.parametrize("comes_at", [DUE - SECOND, DUE + SECOND / 2])
@pytest.mark.parametrize(("before", "after"), WAYS)
async def test_the_new_code_comes_before_the_claim(
    session: Session, before: str, after: str, comes_at: datetime
) -> None:
    old, new = Process("old", before), Process("new", after)
    await live(session, "old", "new")
    await old.start(session, DUE - DAY)
    # Before the instant the old code leads, if a leader is what it has.
    await attempted_now(session, {"nightly": old.job}, claimant("old"), old.leadership, now=DUE - MINUTE / 4)
    await new.start(session, comes_at)
    won = 0
    for seconds in range(1, 40):
        # Calls of the outside scheduler go to whichever code it knows: its claims are those of the current definition.
        won += await old.tick(session, DUE + seconds * SECOND)
        won += await new.tick(session, DUE + seconds * SECOND)
    assert won == 1
    assert await claims(session) == 1


async def test_back_and_forth_within_a_minute(session: Session) -> None:
    await live(session, "first", "second", "third")
    first, second, third = Process("first", "claim"), Process("second", "leader"), Process("third", "claim")
    await first.start(session, DUE - DAY)
    await second.start(session, DUE - 30 * SECOND)
    await third.start(session, DUE + SECOND)
    won = 0
    for seconds in range(1, 40):
        for process in (second, first, third):
            won += await process.tick(session, DUE + seconds * SECOND)
    assert won == 1
    assert await claims(session) == 1
