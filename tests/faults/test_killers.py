"""Accounts that end their workers, or fail for good, among many: they alone pay for it, and the report names them."""

import pytest

from schemas.message import decode
from shared.postgres import Session
from tests.support.broker import administrator
from tests.support.fleet import until
from tests.support.ledger import ledger
from tests.support.nights import assert_night, assert_one_effect_each, count, effects, occurrence_of
from tests.support.processes import Deployment, names_of

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

KILLER = "a000003"
NEIGHBOURS = 50
KILLING_JOBS = """
async def kills(call):
    if call.account == "a000003":
        os.abort()
    await effect(call)

jobs = [nightly("single", PerAccount(kills)), nightly("chunks", PerAccount(kills, chunk_size=5))]
"""


async def test_an_account_that_ends_its_process_is_dead_and_its_neighbours_are_not_charged(
    deployed: Deployment, session: Session
) -> None:
    deployed.declare(KILLING_JOBS)
    await deployed.deploy(1 + NEIGHBOURS)
    deployed.start("trigger", resend_after="1m")

    async def supervised() -> bool:
        """Replace workers that have ended, as whatever runs them would, until both occurrences are closed."""
        for _ in range(2 - sum(one.kind == "worker" and one.alive for one in deployed.services)):
            deployed.start("worker", max_crashes="2", prefetch="16")
        rows = [await occurrence_of(session, deployed, job.name) for job in deployed.jobs]
        return all(row["closed_at"] for row in rows)

    await until(supervised)
    for job in ("single", "chunks"):
        row = await assert_night(session, deployed, job, 1 + NEIGHBOURS, state="partial")
        rows = await ledger(session, row["id"])
        killer = rows.pop(KILLER)
        assert (killer["state"], killer["error_class"], killer["attempts"]) == ("dead", "killed_worker", 0)
        assert {one["attempts"] for one in rows.values()} == {1}, "a neighbour's crash charges nobody"
        assert {one["state"] for one in rows.values()} == {"succeeded"}
        [told] = row["report"]["error_classes"]
        assert (told["error_class"], told["accounts"], told["examples"]) == ("killed_worker", 1, [KILLER])
        found = await effects(session, row)
        assert set(found) == set(rows)
        assert set(found.values()) == {1}
    deaths = [one for one in deployed.services if one.kind == "worker" and not one.alive]
    assert len(deaths) >= 1 + 2 + 2, "after the first time, each account has ended two that ran it alone"
    assert await parked(deployed) == {("chunks", (KILLER,), "rejected"), ("single", (KILLER,), "rejected")}


async def parked(deployed: Deployment) -> set[tuple[str, tuple[str, ...], object]]:
    """Give job, accounts and the broker's reason of every parked message, and leave them there; a copy counts once."""
    found: set[tuple[str, tuple[str, ...], object]] = set()
    async with administrator(deployed.broker_url) as channel:
        queue = await channel.get_queue(f"{deployed.prefix}.dead.parked", ensure=False)
        kept = []
        while message := await queue.get(fail=False):
            kept.append(message)
            read = decode(message.body)
            found.add((read.job, read.accounts, message.headers["x-first-death-reason"]))
        for message in kept:
            await message.reject(requeue=True)
    return found


FAILING = ["a000042", "a004711", "a009999"]
FAILING_JOBS = """
async def fails(call):
    if call.account in ("a000042", "a004711", "a009999") and not (HERE / "mended").exists():
        raise GiveUp("no tax id")
    await effect(call)

jobs = [nightly("night", PerAccount(fails, chunk_size=100))]
"""


async def test_three_of_ten_thousand_are_named_and_run_again_alone(deployed: Deployment, session: Session) -> None:
    deployed.declare(FAILING_JOBS)
    await deployed.deploy(10_000)
    deployed.start("trigger")
    deployed.start("worker")
    deployed.start("worker")
    row = await assert_night(session, deployed, "night", 10_000, state="partial")
    [told] = row["report"]["error_classes"]
    assert (told["accounts"], told["examples"], told["message"]) == (3, FAILING, "no tax id")
    name = f"night:{deployed.night:%Y-%m-%dT%H:%MZ}"
    assert names_of(await deployed.command("show", name)) == FAILING
    assert (await effects(session, row)).total() == 9_997
    last = await count(session, "select max(txid) from effect")
    (deployed.folder / "mended").touch()
    await deployed.command("rerun", name, "--failed", "--reason", "tax ids were added")
    row = await assert_night(session, deployed, "night", 10_000, generation=2)
    await assert_one_effect_each(session, row, 10_000)
    again = await session.fetch("select account from effect where txid > $1 order by account", last)
    assert [one["account"] for one in again] == FAILING
    untouched = "select count(*) from matins.ledger where generation = 1 and attempts = 1"
    assert await count(session, untouched) == 9_997
