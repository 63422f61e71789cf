"""Months of messages cost a pass nothing: every statement that is run at each pass keeps to its indexes."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from shared.deliver import SPREAD_NOTIFICATIONS, SPREAD_PINGS, STILL_OPEN, TAKE_DELIVERIES
from tests.integration.notify.support import NOW, TOLD
from tests.support.ledger import session_on
from trigger.notifications import CHANNEL_STATES, UNDELIVERED

MINUTE = timedelta(minutes=1)
YEARS = """
    with alert as (
        insert into matins.alert (kind, subject, job, told, opened_at, opened_by, closed_at, close_reason)
        select 'partial', 'invoice-run:' || number, 'invoice-run', $2,
               $1::timestamptz - number * interval '10 minutes', 'test', $1, 'over'
          from generate_series(1, 15000) as number returning id, opened_at)
    , told as (
        insert into matins.notification (alert_id, event, body, created_at)
        select id, 'opened', '{}', opened_at from alert returning id, alert_id, created_at)
    insert into matins.delivery
           (channel, thread, place, notification_id, event, state, created_at, not_before, ended_at)
    select 'team', alert_id::text, id, id, 'opened', 'delivered', created_at, created_at, created_at from told
"""
CASES: Sequence[tuple[str, tuple[Any, ...]]] = [
    (SPREAD_NOTIFICATIONS, ("team", None, [], None, 24 * 60 * MINUTE, NOW)),
    (SPREAD_PINGS, ("team", "invoice-run", NOW)),
    (TAKE_DELIVERIES, ("team", "one", MINUTE, 8, NOW)),
    (STILL_OPEN, ("team", 100)),
    (CHANNEL_STATES, (7, NOW)),
    (UNDELIVERED, (7, 100)),
]


@pytest.mark.timeout(180)
async def test_each_statement_of_a_pass_seeks(database_url: str) -> None:
    async with session_on(database_url) as session:
        await session.execute("insert into matins.channel (name, spread_through) values ('team', $1)", NOW)
        await session.execute(YEARS, NOW, TOLD)
        await session.execute("analyze matins.alert, matins.notification, matins.delivery")
        for query, arguments in CASES:
            rows = await session.fetch("explain (costs off) " + query, *arguments)
            plan = "\n".join(row[0] for row in rows)
            assert "Seq Scan on delivery" not in plan, plan
            assert "Seq Scan on notification" not in plan, plan
