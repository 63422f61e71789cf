"""The jobs that the model runs, and how each account behaves: well, badly, or deadly."""

from collections.abc import AsyncIterator
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from shared.accounts import GeneratedAccounts
from shared.job import (
    AccountAt,
    Backoff,
    Cron,
    Decisions,
    EachWorker,
    EveryWorker,
    GiveUp,
    Handled,
    Job,
    NothingToDo,
    Outside,
    PerAccount,
    RetryLater,
    SetBased,
    SourceCall,
    hours,
    minutes,
    seconds,
)
from tests.model import steps
from tests.model.turns import PROCESS

if TYPE_CHECKING:
    from tests.model.world import World

JOB = "model-run"
MAX_TRIES = 2
MOST_CAUGHT_UP = 3


ALONE = "select pg_try_advisory_xact_lock(hashtext($1))"
# Who was active when this one was claimed, and has not been opened again since, has had the account open all the time.
OPEN_BEFORE = """
select count(*) from matins.occurrence o join matins.occurrence p
    on p.job = o.job and p.scheduled_at < o.scheduled_at and p.claimed_at < o.claimed_at and p.generation = 1
 where o.scheduled_at = $1 and p.state in ('claimed', 'running')
   and ((p.sealed_at is null and p.ending is null)
        or exists (
           select from matins.ledger l where l.occurrence_id = p.id and l.account = $2 and l.finished_at is null))
"""


def kind_of(account: str) -> str:
    """Give how an account behaves: its name says so."""
    return account.partition("-")[2]


def accounts_of(random: Random, count: int, kinds: dict[str, float]) -> list[str]:
    """Give accounts in their order, each with its kind in its name."""
    chosen = random.choices(list(kinds), list(kinds.values()), k=count)
    return [f"a{number:02d}-{kind}" for number, kind in enumerate(chosen)]


class Failure(Exception):
    """What a bad account raises."""


async def account_outcome(world: "World", account: str, attempt: int) -> None:
    """End as the account's kind says."""
    match kind_of(account):
        case "poison":
            await world.poison(PROCESS.get())
        case "failing":
            raise Failure(account)
        case "flaky" if attempt < MAX_TRIES:
            raise Failure(account)
        case "later" if attempt < MAX_TRIES:
            raise RetryLater(after=timedelta(seconds=40))
        case "hopeless":
            raise GiveUp(account)
        case "idle":
            raise NothingToDo
        case "stuck":
            raise RetryLater(after=timedelta(minutes=30))


async def take_turn(world: "World", call: Any, account: str) -> None:
    """See that no other transaction runs the account now, and that no earlier occurrence has it open."""
    if not await call.connection.fetchval(ALONE, account):
        world.violation(f"{account} of {call.occurrence} runs beside another occurrence's")
    before = await call.connection.fetchval(OPEN_BEFORE, call.occurrence.scheduled_at, account)
    if before:
        world.violation(f"{account} of {call.occurrence} runs before its turn")


def handler_of(world: "World", mode: str) -> Any:  # noqa: C901 - one small function for each kind of call
    """Give the handler of a job in one of the modes."""

    async def in_turn(call: Any, account: str) -> None:
        if world.profile.overlap_by == "account":
            await take_turn(world, call, account)

    async def per_account(call: Any) -> None:
        world.watch.runs(str(call.occurrence), call.account)
        await in_turn(call, call.account)
        await call.connection.execute(steps.EFFECT, str(call.occurrence), call.account, PROCESS.get().name)
        if kind_of(call.account) == "broken":
            await call.connection.execute(steps.PROMISE, call.account)
        await account_outcome(world, call.account, call.attempt)

    async def set_based(call: Any) -> Handled:
        identity = str(call.occurrence)
        for account in call.accounts:
            world.watch.runs(identity, account)
            await in_turn(call, account)
        kinds = {account: kind_of(account) for account in call.accounts}
        if "poison" in kinds.values():
            await world.poison(PROCESS.get())
        good = [one for one, kind in kinds.items() if kind not in {"failing", "silent", "idle", "broken"}]
        await call.connection.execute(steps.EFFECTS_OF, identity, good, PROCESS.get().name)
        if "broken" in kinds.values():
            raise Failure
        return Handled(
            good,
            {one: "bad" for one, kind in kinds.items() if kind == "failing"},
            [one for one, kind in kinds.items() if kind == "idle"],
        )

    async def outside(call: Any) -> dict[str, int]:
        world.watch.runs(str(call.occurrence), call.account)
        await world.turns.take("call")
        await account_outcome(world, call.account, call.attempt)
        world.provider[call.key] = world.provider.get(call.key, 0) + 1
        line = await world.turns.take("called")
        line.last = "execute"
        return {"times": world.provider[call.key]}

    async def own(call: Any) -> None:
        await call.connection.execute(steps.EFFECT, str(call.occurrence), call.worker, PROCESS.get().name)

    match mode:
        case "every":
            return EveryWorker(own)
        case "chunked":
            return PerAccount(per_account, chunk_size=3, concurrency=2)
        case "batched":
            return PerAccount(per_account, settle="batched", concurrency=2)
        case "set_based":
            return SetBased(set_based, chunk_size=3, concurrency=2)
        case "outside":
            return Outside(outside, key_valid_for=hours(1), concurrency=2)
        case _:
            return PerAccount(per_account, concurrency=2)


def source_of(world: "World") -> GeneratedAccounts:
    """Give the source: accounts appear behind its cursor while it runs, and at times it fails."""

    async def read(call: SourceCall) -> AsyncIterator[AccountAt]:
        for account in world.accounts:
            if call.cursor is None or account > call.cursor:
                if (world.faults or world.profile.faulty_source) and world.random.random() < world.profile.source_fails:
                    raise Failure(account)
                yield AccountAt(account, account)

    return GeneratedAccounts(read, page_size=world.profile.page_size)


def job_of(world: "World", mode: str, minute: int) -> Job:
    """Give the job as it is declared in one release of the code."""
    profile = world.profile
    return Job(
        JOB,
        schedule=Cron(f"{minute}-59/15 * * * *"),
        accounts=EachWorker() if mode == "every" else source_of(world),
        handler=handler_of(world, mode),
        decisions=Decisions(
            catch_up=profile.catch_up,
            catch_up_within=minutes(45),
            overlap=profile.overlap,
            overlap_by=profile.overlap_by,
            start_within=minutes(3),
            finish_within=minutes(12),
            catch_up_at_most=MOST_CAUGHT_UP if profile.catch_up == "all" else None,
            catch_up_pace=seconds(20) if profile.catch_up == "all" else None,
        ),
        max_tries=MAX_TRIES,
        backoff=Backoff(first=seconds(4), factor=2, limit=seconds(60)),
        queue="work",
        on_finish_within=profile.on_finish_within,
        coordination=profile.coordination[0 if minute == 0 else 1],
    )
