"""The open alerts beside a list of declared jobs, where there is a database to ask."""

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta

from shared.errors import MatinsError
from shared.postgres import DatabaseError, DriverError
from shared.settings import Settings
from shared.terminal import given, run, say
from trigger.alerts import list_alerts
from trigger.commands_deploy import PROGRAM
from trigger.reach import reach

# A list that can be had without a database does not wait long for one.
LONGEST_LOOK = timedelta(seconds=5)


def open_by_job(settings: Settings) -> dict[str, list[str]] | None:
    """Give the names of open alerts by job; None where no database is named or answers; the latter is said."""
    if not given(settings, "database_url"):
        return None
    hurried = replace(settings, database_timeout=min(settings.database_timeout, LONGEST_LOOK))

    async def look() -> dict[str, list[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        async with reach(hurried) as session:
            for alert in (await list_alerts(session))[0]:
                found[alert["job"]].append(alert["name"])
        return found

    try:
        return run(look)
    except (MatinsError, DatabaseError, DriverError, OSError) as error:
        say(PROGRAM, f"open alerts were not seen: {error}")
        return None
