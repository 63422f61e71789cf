"""Schedules that luck does not find: one step is held just before a statement, and something else happens meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from schemas.occurrence import Identity
from shared.broker import QueueDepth
from shared.close import close
from shared.postgres import Database
from tests.model import steps
from tests.model.checks import ALWAYS, AT_END, ONE_ACTIVE
from tests.model.database import Server
from tests.model.jobs import JOB
from tests.model.profile import WELL, Profile
from tests.model.world import BEGIN, World
from trigger.claim import Claim, Claimant, Won, claim_due, claim_one
from trigger.fan_out import FanOut, fan_out, write_page
from trigger.operate import CANCEL_OCCURRENCE, Choice, Order, rerun
from trigger.pages import Page
from trigger.plan import plan_ahead
from trigger.register import register
from trigger.sweep import Sweeping, sweep_pass

MINUTE = timedelta(minutes=1)
DUE = BEGIN + MINUTE
CLAIMANT = Claimant("directed", "north", timedelta(seconds=30))
ORDER = Order("operator", "because", "directed")
SETTLE = """
    update matins.ledger set state = $1, finished_at = clock_timestamp(), epoch = epoch + 1, attempts = 1,
           error_class = case when $1 = 'failed' then 'Failure' end
     where state = 'pending'"""

WAITS = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"

Meanwhile = Callable[[], Awaitable[None]]


@dataclass(eq=False, slots=True)
class HeldSession:
    """A session of the product that stops once before a statement, and lets something else happen."""

    raw: Any
    mutations: Mapping[str, str]
    before: dict[str, Meanwhile]

    async def _say(self, method: str, query: str, args: tuple[Any, ...]) -> Any:
        label = steps.label_of(query)
        if (meanwhile := self.before.pop(label, None)) is not None:
            await meanwhile()
        return await getattr(self.raw, method)(self.mutations.get(label, query), *args)

    async def execute(self, query: str, *args: Any) -> Any:
        """As the driver's."""
        return await self._say("execute", query, args)

    async def fetch(self, query: str, *args: Any) -> Any:
        """As the driver's."""
        return await self._say("fetch", query, args)

    async def fetchrow(self, query: str, *args: Any) -> Any:
        """As the driver's."""
        return await self._say("fetchrow", query, args)

    async def fetchval(self, query: str, *args: Any) -> Any:
        """As the driver's."""
        return await self._say("fetchval", query, args)

    def transaction(self, **options: Any) -> Any:
        """As the driver's."""
        return self.raw.transaction(**options)


class HeldDatabase(Database):
    """A pool of such sessions."""

    def __init__(self, server: Server, mutations: Mapping[str, str], before: dict[str, Meanwhile]) -> None:
        self._server, self._mutations, self._before = server, mutations, before

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Any]:
        """Lend a session."""
        raw = await self._server.connection()
        try:
            yield HeldSession(raw, self._mutations, self._before)
        finally:
            self._server.free.append(raw)


@dataclass(eq=False, slots=True)
class Stage:
    """A job and a database on which one schedule is played."""

    server: Server
    mutations: Mapping[str, str]
    profile: Profile = field(default_factory=lambda: Profile(kinds=WELL, accounts=2, source_fails=0, revisions=True))
    world: World = field(init=False)

    def __post_init__(self) -> None:
        self.world = World(self.server, self.profile, 1, self.mutations)

    def database(self, before: dict[str, Meanwhile] | None = None) -> HeldDatabase:
        """Give a pool; `before` says what happens just before some statement."""
        return HeldDatabase(self.server, self.mutations, before or {})

    async def begin(self) -> None:
        """Make the tables as new and register the job a minute before it is due."""
        await self.server.empty()
        await self.server.step(BEGIN, back=True)
        await self.declare(0)

    async def declare(self, release: int) -> int:
        """Register a release of the job and plan it; give its revision."""
        job = self.world.jobs[release]
        async with self.database().session() as session:
            revision = (await register(session, job, instance="directed")).revision
            while (await plan_ahead(session, job, revision)).more:
                pass
        return revision

    async def claim(
        self, at: datetime, *, release: int = 0, revision: int = 1, before: dict[str, Meanwhile] | None = None
    ) -> Claim | None:
        """Claim what is due."""
        await self.server.step(at)
        async with self.database(before).session() as session:
            outcome = await claim_due(session, self.world.jobs[release], revision, CLAIMANT)
        return outcome.claim if isinstance(outcome, Won) else None

    async def fire(self, at: datetime, before: dict[str, Meanwhile] | None = None) -> Claim | None:
        """Claim an instant by hand."""
        async with self.database(before).session() as session:
            outcome = await claim_one(session, Identity(JOB, at), CLAIMANT, fired_by="operator", reason="because")
        return outcome.claim if isinstance(outcome, Won) else None

    async def fan_out(self, claim: Claim) -> None:
        """Write all accounts, and seal."""
        await fan_out(FanOut(self.database(), self.world.jobs[0], CLAIMANT), claim)

    async def settle(self, state: str) -> None:
        """Settle whatever is open."""
        await self.server.control.execute(SETTLE, state)

    async def close(self, claim: Claim, before: dict[str, Meanwhile] | None = None) -> None:
        """Close, if it is over."""
        async with self.database(before).session() as session:
            await close(session, claim.id, by="directed")

    async def rerun(self, claim: Claim) -> None:
        """Run what failed again."""
        async with self.database().session() as session:
            await rerun(session, claim.identity, Choice(reconciled=True), ORDER)

    async def cancel_and_die(self, claim: Claim) -> None:
        """Cancel, and die before the close."""
        async with self.database().session() as session:
            await session.fetchval(CANCEL_OCCURRENCE, claim.id, "operator", "because", "directed")

    async def sweep(self, before: dict[str, Meanwhile] | None = None) -> None:
        """Sweep once."""

        async def depth() -> QueueDepth | None:
            return None

        await sweep_pass(Sweeping(self.database(before), JOB, "work", depth, "directed", CLAIMANT.lease, MINUTE))

    async def found(self, *more: str) -> list[str]:
        """Give the breaches: those of every moment, and of the end those that begin so."""
        asked = ALWAYS | ONE_ACTIVE | {told: query for told, query in AT_END.items() if told.startswith(more or ("-",))}
        return [told for told, query in asked.items() if await self.server.control.fetch(query)]

    async def opened(self) -> Claim:
        """Give a claimed occurrence, all of whose accounts wait."""
        await self.begin()
        claim = cast("Claim", await self.claim(DUE))
        await self.fan_out(claim)
        return claim


async def closes_an_earlier_generation(stage: Stage) -> list[str]:
    """A close that has read generation 1 writes when generation 2 has been settled, too."""
    claim = await stage.opened()
    await stage.settle("failed")

    async def meanwhile() -> None:
        await stage.close(claim)
        await stage.rerun(claim)
        await stage.settle("failed")

    await stage.close(claim, {"close_write": meanwhile})
    return await stage.found("a closed generation")


async def closes_what_is_cancelled_meanwhile(stage: Stage) -> list[str]:
    """A cancel commits between a close's reading and its writing."""
    claim = await stage.opened()
    await stage.settle("succeeded")
    await stage.close(claim, {"close_write": lambda: stage.cancel_and_die(claim)})
    await stage.close(claim)
    return await stage.found("an occurrence that somebody cancelled")


async def closes_before_the_seal(stage: Stage) -> list[str]:
    """The first page's accounts are settled before the second page is read."""
    await stage.begin()
    claim = cast("Claim", await stage.claim(DUE))
    page = Page((stage.world.accounts[0],), stage.world.accounts[0], last=False)
    await write_page(FanOut(stage.database(), stage.world.jobs[0], CLAIMANT), claim, page)
    await stage.settle("succeeded")
    await stage.close(claim)
    state = await stage.server.control.fetchval("select state from matins.occurrence where id = $1", claim.id)
    return [] if state == "claimed" else [f"it is {state}, and one of its accounts was never read"]


async def writes_a_page_behind_the_end(stage: Stage) -> list[str]:
    """A fan-out is frozen before its page, and finds the occurrence cancelled and closed."""
    await stage.begin()
    claim = cast("Claim", await stage.claim(DUE))

    async def meanwhile() -> None:
        await stage.cancel_and_die(claim)
        await stage.close(claim)

    page = Page((stage.world.accounts[0],), stage.world.accounts[0], last=True)
    await write_page(FanOut(stage.database({"move_cursor": meanwhile}), stage.world.jobs[0], CLAIMANT), claim, page)
    return await stage.found()


async def sweeps_an_earlier_generation(stage: Stage) -> list[str]:
    """A sweeper that has read a cancelled occurrence cancels when it has been run again."""
    claim = await stage.opened()
    await stage.cancel_and_die(claim)

    async def meanwhile() -> None:
        await stage.sweep()
        await stage.rerun(claim)

    await stage.sweep({"cancel_pending": meanwhile})
    return await stage.found("an account was cancelled, and nobody")


async def fires_at_the_second(stage: Stage) -> list[str]:
    """An instant becomes due between an operator's look at it and the claim, while the one before still runs."""
    await stage.opened()
    await stage.server.step(DUE + 14 * MINUTE)
    await stage.fire(DUE + 15 * MINUTE, {"claim": lambda: stage.server.step(DUE + 15 * MINUTE)})
    return await stage.found()


async def claims_two_at_once(stage: Stage) -> list[str]:
    """An operator fires one of two due instants while a trigger that has looked for neighbours claims the other one."""
    await stage.begin()
    await stage.server.step(DUE + 16 * MINUTE)
    fired: list[asyncio.Task[Claim | None]] = []

    async def meanwhile() -> None:
        fired.append(asyncio.create_task(stage.fire(DUE)))
        while not fired[0].done() and not await stage.server.control.fetchval(WAITS):
            pass

    ends: list[Any] = [
        *await asyncio.gather(stage.claim(DUE + 16 * MINUTE, before={"claim": meanwhile}), return_exceptions=True),
        *await asyncio.gather(*fired, return_exceptions=True),
    ]
    return [f"a claim ended in {end!r}" for end in ends if isinstance(end, Exception)] + await stage.found()


async def moves_the_schedule(stage: Stage) -> list[str]:
    """A release that is due five minutes later comes when the former one has run."""
    claim = await stage.opened()
    await stage.settle("succeeded")
    await stage.close(claim)
    await stage.server.step(DUE + 2 * MINUTE)
    revision = await stage.declare(1)
    again = await stage.claim(DUE + 5 * MINUTE, release=1, revision=revision)
    return [] if again is None else ["the same night's work was claimed twice"]


async def fires_the_later_of_two(stage: Stage) -> list[str]:
    """Two are due; an operator runs the later one, whose window covers the earlier one."""
    await stage.begin()
    await stage.server.step(DUE + 16 * MINUTE)
    claim = cast("Claim", await stage.fire(DUE + 15 * MINUTE))
    await stage.fan_out(claim)
    await stage.settle("succeeded")
    await stage.close(claim)
    again = await stage.claim(DUE + 17 * MINUTE)
    return [] if again is None else ["time that was covered was run again"]


DIRECTED: dict[str, Callable[[Stage], Awaitable[list[str]]]] = {
    play.__name__: play
    for play in (
        closes_an_earlier_generation,
        closes_what_is_cancelled_meanwhile,
        closes_before_the_seal,
        writes_a_page_behind_the_end,
        sweeps_an_earlier_generation,
        fires_at_the_second,
        claims_two_at_once,
        moves_the_schedule,
        fires_the_later_of_two,
    )
}
