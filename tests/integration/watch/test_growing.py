"""A job whose runs grow is told of once, before they meet, and no more when they are short again."""

from datetime import timedelta

from shared.postgres import Database, Session
from tests.integration.operate.night import nightly
from tests.integration.watch.support import DUE, HOUR, PASS, looked, open_alerts, told, watch_on
from tests.support.growth import DAY, run_nights
from tests.support.ledger import DUE as LAST_NIGHT

NOW = LAST_NIGHT + HOUR


async def test_growth_is_told_once_and_closes_by_itself(database: Database, session: Session) -> None:
    assert LAST_NIGHT == DUE
    await run_nights(session, nightly(), lambda night: 12 * 3600 + 760 * night)
    # Nothing else is out of order: the last runs have ended, and a day of the plan is there.
    await session.execute("update matins.instance set seen_at = $1", NOW)
    one, other = watch_on(database, "one"), watch_on(database, "other")
    for number in range(4):
        for watch in (one, other):
            await looked(watch, NOW + number * PASS)
    growth = ("duration_near_interval", "invoice-run")
    assert growth in await open_alerts(session)
    assert [event for event, *about in await told(session) if tuple(about) == growth] == ["opened"]
    await session.execute("update matins.occurrence set closed_at = claimed_at + interval '1 minute'")
    await looked(one, NOW + DAY - timedelta(hours=2))
    assert growth not in await open_alerts(session)
    assert [event for event, *about in await told(session) if tuple(about) == growth] == ["opened", "closed"]
