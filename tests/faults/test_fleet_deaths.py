"""Processes die again and again while a night runs: it gets on, it ends, and it is exact."""

import os
import random
import sys
import time
from collections import deque

import pytest

from shared import clock
from shared.postgres import Session
from tests.support.checker import assert_none, check
from tests.support.nights import CLOSED, assert_night, assert_one_effect_each, count, occurrence_of
from tests.support.processes import Deployment, Service

pytestmark = [pytest.mark.drill, pytest.mark.timeout(150)]

SEED = int(os.environ.get("DRILL_SEED") or time.time_ns() % 1_000_000)
DEATHS = 3
# An account that is under way in each of many deaths is not what causes them here.
FORGIVING = {"max_crashes": "50"}
MIXED_JOBS = """
async def slowly(call):
    await effect(call)
    await call.connection.execute("select pg_sleep(0.02)")


async def roll_up(call):
    await call.connection.execute(
        "insert into effect (account, occurrence) select unnest($1::text[]), $2", call.accounts, str(call.occurrence))
    await call.connection.execute("select pg_sleep(0.05)")
    return Handled(done=call.accounts)


async def outside(call):
    await anyio.sleep(0.05)

jobs = [
    nightly("single", PerAccount(slowly)),
    nightly("chunks", SetBased(roll_up, chunk_size=10)),
    nightly("outside", Outside(outside, key_valid_for=hours(24))),
]
"""
ACCOUNTS = 400


async def test_the_whole_fleet_dies_at_random_moments(deployed: Deployment, session: Session) -> None:
    sys.stderr.write(f"DRILL_SEED={SEED}\n")
    chance = random.Random(SEED)  # noqa: S311 - chooses moments, guards nothing
    deployed.declare(MIXED_JOBS)
    await deployed.deploy(ACCOUNTS)
    for _ in range(DEATHS):
        fleet = [deployed.start(kind, **FORGIVING) for kind in ("trigger", "trigger", "worker", "worker")]
        await chance.choice(fleet).working()
        await clock.sleep(chance.uniform(0, 1))
        for service in chance.sample(fleet, len(fleet)):
            service.kill()
        assert_none(await check(session, at_rest=False))
    for kind in ("trigger", "worker", "worker"):
        deployed.start(kind, **FORGIVING)
    for job in ("single", "chunks", "outside"):
        row = await assert_night(session, deployed, job, ACCOUNTS)
        if job != "outside":
            await assert_one_effect_each(session, row, ACCOUNTS)


STORM_SECONDS = 2.0
MANY = 20_000
MANY_JOBS = """
async def slowly(call):
    await effect(call)
    if call.account.endswith("00"):
        await call.connection.execute("select pg_sleep(0.1)")

jobs = [nightly("night", PerAccount(slowly, chunk_size=50, concurrency=2), page_size=2000)]
"""


async def test_a_worker_dies_every_two_seconds_and_triggers_are_restarted_meanwhile(
    deployed: Deployment, session: Session
) -> None:
    deployed.declare(MANY_JOBS)
    await deployed.deploy(MANY)

    def start(kind: str) -> Service:
        return deployed.start(kind, prefetch="4", **FORGIVING)

    triggers, workers = deque(start("trigger") for _ in range(2)), deque(start("worker") for _ in range(3))
    deaths = 0
    while (await occurrence_of(session, deployed, "night"))["state"] not in CLOSED:
        await clock.sleep(STORM_SECONDS)
        # On a busy machine a start takes longer than this: the next one dies when the last is replaced.
        if all(one.lines("working") for one in workers):
            workers.popleft().kill()
            workers.append(start("worker"))
            deaths += 1
        if all(one.lines("working") for one in triggers):
            triggers.popleft().terminate()
            triggers.append(start("trigger"))
    assert deaths >= 3, "it ran for long enough to be disturbed"
    row = await assert_night(session, deployed, "night", MANY)
    await assert_one_effect_each(session, row, MANY)
    assert await count(session, "select count(*) from matins.ledger where attempts <> 1") == 0, "no death was charged"
