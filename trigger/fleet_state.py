"""The fleet as the database knows it: who lives, who vanished, who leads, what differs, and the database itself."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.differences import read_differences
from shared.limits import CLOCK_SKEW_SECONDS
from shared.migrate import migrations
from shared.postgres import Session
from shared.sql_files import statement
from trigger.definitions import as_values
from trigger.status import LEADERS, nobody

FLEET_INSTANCES = statement("trigger", "fleet_instances")
DATABASE_STATE = statement("trigger", "database_state")
DATABASE_STANDBYS = statement("trigger", "database_standbys")

Process = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fleet:
    """What was read. `processes` live; `vanished` fell silent within the last day without a word, the latest first.

    `ended` is how many have said within it that they end. `versions` are, by what they are of, how many live processes
    have which. `problems` are of the fleet as a whole, a line each.
    """

    processes: list[Process]
    vanished: list[Process]
    ended: int
    versions: dict[str, list[tuple[str, int]]]
    differences: list[dict[str, Any]]
    leaders: list[dict[str, Any]]
    database: dict[str, Any]
    problems: list[str]


async def read_fleet(session: Session) -> Fleet:
    """Read everything; in one view of the database, if the session has one."""
    seen = [dict(row) for row in await session.fetch(FLEET_INSTANCES)]
    processes = [_judged(one) for one in seen if one["state"] == "live"]
    vanished = sorted((one for one in seen if one["state"] == "vanished"), key=lambda one: one["silent_seconds"])
    live = {one["id"]: one for one in processes}
    leaders = [{**row, "process": live.get(row["instance"])} for row in await session.fetch(LEADERS)]
    database = dict(await session.fetchrow(DATABASE_STATE) or {})
    database["standbys"] = [dict(row) for row in await session.fetch(DATABASE_STANDBYS)]
    database["schema_known"] = len(migrations())
    return Fleet(
        processes,
        vanished,
        sum(one["state"] == "ended" for one in seen),
        _versions(processes),
        [as_values(one) for one in await read_differences(session)],
        leaders,
        database,
        nobody(one["kind"] for one in processes),
    )


def _judged(process: Process) -> Process:
    """Say whether a process's clock is too far off from the database's; None while it has measured nothing."""
    skew = process["skew"]
    return {**process, "is_skewed": None if skew is None else abs(skew) > CLOCK_SKEW_SECONDS}


def _versions(processes: Sequence[Process]) -> dict[str, list[tuple[str, int]]]:
    named = {"release": "version", "time zones": "tzdata_version", "messages": "message_version"}
    return {
        told: sorted(Counter(str(one[name]) for one in processes).items(), key=lambda found: (-found[1], found[0]))
        for told, name in named.items()
    }
