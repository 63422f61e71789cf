"""A process is frozen past its lease while another does its work, then goes on: what it still writes is nothing."""

from pathlib import Path
from typing import Any

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.ledger import ledger
from tests.support.nights import SLOW_SOURCE_JOBS, assert_night, assert_one_effect_each, count, effects, occurrence_of
from tests.support.processes import Deployment, Service

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

ACCOUNTS = 5
STUCK = "a000002"
MODES = ("one", "chunk", "outside")
JOBS = """
WHO = os.environ.get("MATINS_EXAMPLE_WHO")


async def stick(mode, accounts):
    if WHO == "frozen" and "a000002" in accounts:
        (HERE / f"stuck-{mode}").touch()
        while not (HERE / "go").exists():
            await anyio.sleep(0.05)


async def one(call):
    await effect(call)
    await stick("one", [call.account])
    if WHO == "refusing" and call.account == "a000002":
        raise GiveUp("refused")


async def chunk(call):
    refused = {one: "refused" for one in call.accounts if WHO == "refusing" and one == "a000002"}
    done = [one for one in call.accounts if one not in refused]
    await call.connection.execute(
        "insert into effect (account, occurrence) select unnest($1::text[]), $2", done, str(call.occurrence))
    await stick("chunk", call.accounts)
    return Handled(done=done, failed=refused)


async def outside(call):
    await stick("outside", [call.account])
    with (HERE / "calls").open("a") as calls:
        calls.write(f"{WHO} {call.account} {call.key}\\n")
    if WHO == "refusing" and call.account == "a000002":
        raise GiveUp("refused")
    return WHO

jobs = [
    nightly("one", PerAccount(one, timeout=seconds(3)), max_tries=1),
    nightly("chunk", SetBased(chunk, timeout=seconds(3), chunk_size=2), max_tries=1),
    nightly("outside", Outside(outside, key_valid_for=hours(24)), max_tries=1),
]
"""


async def freeze_in_each_mode(deployed: Deployment) -> Service:
    """Have a worker stuck in the middle of an account of each job, and freeze it."""
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS)
    deployed.start("trigger")
    frozen = deployed.start("worker", example_who="frozen")

    async def stuck() -> bool:
        return all((deployed.folder / f"stuck-{mode}").exists() for mode in MODES)

    await until(stuck)
    frozen.freeze()
    return frozen


async def rows_of_all(session: Session, occurrences: list[Any]) -> list[dict[str, Any]]:
    return [{name: dict(row) for name, row in (await ledger(session, one["id"])).items()} for one in occurrences]


async def assert_nothing_changes(
    session: Session, deployed: Deployment, frozen: Service, occurrences: list[Any]
) -> None:
    """Let the frozen worker go on, and see that it tells of a fenced write for each mode and has changed nothing."""
    before = await rows_of_all(session, occurrences)
    effects_before = [await effects(session, one) for one in occurrences]
    (deployed.folder / "go").touch()
    frozen.go_on()
    for occurrence in occurrences:
        await frozen.logged("fenced", occurrence=f"{occurrence['job']}:{deployed.night:%Y-%m-%dT%H:%MZ}")
    frozen.terminate()
    assert await frozen.ended() == 0
    assert await rows_of_all(session, occurrences) == before
    assert [await effects(session, one) for one in occurrences] == effects_before
    assert await count(session, "select count(*) from matins.occurrence where state = 'running'") == 0


async def test_another_worker_finished_meanwhile(deployed: Deployment, session: Session) -> None:
    frozen = await freeze_in_each_mode(deployed)
    deployed.start("worker", example_who="second")
    occurrences = [await assert_night(session, deployed, mode, ACCOUNTS) for mode in MODES]
    for occurrence in occurrences[:2]:
        assert (await effects(session, occurrence))[STUCK] == 1
    await assert_nothing_changes(session, deployed, frozen, occurrences)
    assert (await ledger(session, occurrences[2]["id"]))[STUCK]["result"] == "second"
    assert keys_of(deployed.folder, STUCK) <= 1, "both calls carried the same key"


async def test_a_rerun_succeeded_meanwhile(deployed: Deployment, session: Session) -> None:
    frozen = await freeze_in_each_mode(deployed)
    refusing = deployed.start("worker", example_who="refusing")
    failed = [await assert_night(session, deployed, mode, ACCOUNTS, state="partial") for mode in MODES]
    refusing.terminate()
    assert await refusing.ended() == 0
    deployed.start("worker", example_who="third")
    for occurrence in failed:
        name = f"{occurrence['job']}:{deployed.night:%Y-%m-%dT%H:%MZ}"
        await deployed.command("rerun", name, "--failed", "--reason", "mended")
    occurrences = [await assert_night(session, deployed, mode, ACCOUNTS, generation=2) for mode in MODES]
    await assert_nothing_changes(session, deployed, frozen, occurrences)
    for occurrence in occurrences[:2]:
        assert set((await effects(session, occurrence)).values()) == {1}
    assert (await ledger(session, occurrences[2]["id"]))[STUCK]["result"] == "third"
    assert keys_of(deployed.folder, STUCK) == 1, "every generation's calls carried the same key"


def keys_of(folder: Path, account: str) -> int:
    calls = [line.split() for line in (folder / "calls").read_text().splitlines()]
    return len({key for _, called, key in calls if called == account})


async def test_another_trigger_finished_the_fan_out_meanwhile(deployed: Deployment, session: Session) -> None:
    deployed.declare(SLOW_SOURCE_JOBS)
    await deployed.deploy(0)
    frozen = deployed.start("trigger")

    async def under_way() -> bool:
        return bool((await occurrence_of(session, deployed, "night"))["accounts_read"] >= 20)

    await until(under_way)
    frozen.freeze()
    deployed.start("trigger")
    deployed.start("worker")
    row = await assert_night(session, deployed, "night", 100)
    before = dict(await occurrence_of(session, deployed, "night"))
    frozen.go_on()
    await frozen.logged("fan-out was taken over")
    assert dict(await occurrence_of(session, deployed, "night")) == before
    await assert_one_effect_each(session, row, 100)
    assert before["epoch"] == 2
    frozen.terminate()
    assert await frozen.ended() == 0
