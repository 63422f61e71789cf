"""Planned maintenance: added, listed, ended and withdrawn, with what the audit trail says of it."""

from datetime import timedelta
from typing import Any

import pytest

from shared.terminal import Refused
from tests.integration.operate.night import ORDER, OTHER, closed_night
from tests.support.alerts import acts
from tests.support.ledger import DUE, session_on
from trigger.maintenance import FARTHEST_BEGIN, LONGEST_MAINTENANCE, add_maintenance, end_maintenance
from trigger.maintenances import list_maintenance

HOUR = timedelta(hours=1)


async def test_one_begins_now_or_later_and_the_same_is_added_once(database_url: str) -> None:
    async with session_on(database_url) as session:
        await closed_night(session)
        soon = await add_maintenance(session, "invoice-run", DUE + HOUR, 2 * HOUR, ORDER, now=DUE)
        assert (soon.since, soon.until, soon.added) == (DUE + HOUR, DUE + 3 * HOUR, True)
        same = await add_maintenance(session, "invoice-run", DUE + HOUR, DUE + 3 * HOUR, OTHER, now=DUE)
        assert (same.id, same.added) == (soon.id, False)
        of_all = await add_maintenance(session, None, DUE + HOUR, DUE + 3 * HOUR, OTHER, now=DUE)
        assert of_all.added
        now = await add_maintenance(session, None, None, HOUR, ORDER, now=DUE)
        assert now.since == DUE
        told = [(kind, actor, detail["maintenance"]) for kind, actor, _, detail in await acts(session)]
        assert told == [
            ("maintenance_add", "ann", soon.id),
            ("maintenance_add", "bob", of_all.id),
            ("maintenance_add", "ann", now.id),
        ]


@pytest.mark.parametrize(
    ("since", "until", "told"),
    [
        (DUE - HOUR, HOUR, "--since: 2026-08-25T01:00Z is in the past: leave it out"),
        (DUE + FARTHEST_BEGIN + HOUR, HOUR, "is more than 90 days ahead"),
        (DUE + 2 * HOUR, DUE + HOUR, "a maintenance ends later than it begins"),
        (None, DUE - HOUR, "a maintenance ends later than it begins"),
        (None, LONGEST_MAINTENANCE + HOUR, "a maintenance lasts 7 days at most"),
    ],
)
async def test_one_that_makes_no_sense_is_refused(database_url: str, since: Any, until: Any, told: str) -> None:
    async with session_on(database_url) as session:
        with pytest.raises(Refused, match=told):
            await add_maintenance(session, None, since, until, ORDER, now=DUE)
        with pytest.raises(Refused, match="there is no job 'invoice-run'"):
            await add_maintenance(session, "invoice-run", since, until, ORDER, now=DUE)
        assert await list_maintenance(session, over_too=True) == []


async def test_one_in_force_ends_now_and_one_to_come_is_withdrawn(database_url: str) -> None:
    async with session_on(database_url) as session:
        await closed_night(session)
        current = await add_maintenance(session, None, None, HOUR, ORDER)
        later = await add_maintenance(session, "invoice-run", current.until, HOUR, ORDER)
        listed = await list_maintenance(session)
        assert [(one["id"], one["state"]) for one in listed] == [(current.id, "in force"), (later.id, "to come")]
        assert [one["id"] for one in await list_maintenance(session, "invoice-run")] == [current.id, later.id]
        assert await end_maintenance(session, current.id, OTHER) == (
            f"maintenance {current.id} of all jobs is over: alerts are told again"
        )
        assert "is withdrawn: it had not begun" in await end_maintenance(session, later.id, OTHER)
        assert f"maintenance {current.id} of all jobs was over already" in await end_maintenance(
            session, current.id, ORDER
        )
        with pytest.raises(Refused, match=f"there is no maintenance {later.id}; `maintenance list --all`"):
            await end_maintenance(session, later.id, ORDER)
        assert await list_maintenance(session) == []
        (over,) = await list_maintenance(session, over_too=True)
        assert (over["id"], over["state"]) == (current.id, "over")
        ended, withdrawn = (await acts(session))[2:]
        assert (ended[0], ended[1], ended[2]) == ("maintenance_end", "bob", OTHER.reason)
        assert ended[3]["before"]["since"] == ended[3]["after"]["since"]
        assert ended[3]["before"]["until"] > ended[3]["after"]["until"]
        assert (withdrawn[1], withdrawn[3]["after"]) == ("bob", None)
        with pytest.raises(Refused, match="did you mean invoice-run"):
            await list_maintenance(session, "invoicerun")
