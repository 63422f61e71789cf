"""The hot statements keep to their index, also in a month whose partition has no statistics yet."""

from datetime import timedelta
from typing import Any

import pytest

from shared.calls import AccountCall
from shared.close import CLOSE_CANDIDATE
from shared.job import PerAccount
from tests.support.ledger import DUE, job_with, running_occurrence, session_on
from trigger.publish import FIRST_ROWS, IN_FLIGHT
from worker.handle import START_ALONE
from worker.outside import SETTLE_OUTSIDE, START_OUTSIDE
from worker.settle import SETTLE_SUCCEEDED
from worker.turns import START_ROWS


async def nothing(call: AccountCall) -> None:
    """Do nothing."""


KEY = (1, DUE)
ONE = timedelta(seconds=1)
CASES: list[tuple[str, tuple[Any, ...], str]] = [
    (START_ROWS, (*KEY, ["a1"], 1, None), "_pkey"),
    (SETTLE_SUCCEEDED, (*KEY, ["a1"], [], DUE, "worker", DUE), "_pkey"),
    (START_ALONE, (*KEY, "a1", 1, None, 3), "_pkey"),
    (START_OUTSIDE, (*KEY, "a1", 1, None, 3, ONE, "worker", DUE), "_pkey"),
    (SETTLE_OUTSIDE, (*KEY, "a1", 5, "succeeded", 1, ONE, None, None, False, None, ""), "_pkey"),
    (FIRST_ROWS, (*KEY, 100, 50, None), "_occurrence_id_position_idx"),
    (IN_FLIGHT, ("invoice-run", 100, None), "_occurrence_id_position_idx"),
    (CLOSE_CANDIDATE, (1,), "_occurrence_id_position_idx"),
]


@pytest.mark.parametrize("analysed", [False, True], ids=["without statistics", "analysed"])
async def test_each_statement_seeks_by_its_index(database_url: str, *, analysed: bool) -> None:
    job = job_with(PerAccount(nothing))
    async with session_on(database_url) as session:
        await running_occurrence(session, job, [f"a{number}" for number in range(20_000)])
        if analysed:
            await session.execute("analyze matins.ledger")
        await session.execute("set plan_cache_mode = force_generic_plan")
        for query, arguments, index in CASES:
            rows = await session.fetch("explain (costs off) " + query, *arguments)
            plan = "\n".join(row[0] for row in rows)
            assert f"ledger_2026_08{index}" in plan, f"{query}\n{plan}"
            assert "Seq Scan on ledger" not in plan, f"{query}\n{plan}"
