"""What must hold of a night when it is over, whatever happened meanwhile; and looks at how far it has got."""

from collections import Counter
from typing import Any

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.processes import Deployment

# Jobs whose accounts come slowly enough to find a trigger in the middle of its fan-out.
SLOW_SOURCE_JOBS = """
async def numbers(call):
    for number in range(int(call.cursor or 0), 100):
        await anyio.sleep(0.02)
        yield AccountAt(f"a{number:06d}", str(number + 1))

jobs = [nightly("night", PerAccount(effect), accounts=GeneratedAccounts(numbers, page_size=10))]
"""

HELD_JOBS = """
async def held(call):
    await effect(call)
    if call.account == "a000007":
        await call.connection.execute("select hold()")

jobs = [nightly("night", PerAccount(held))]
"""

OPEN_ALERTS = "select count(*) from matins.alert where closed_at is null"
CLOSED = ("succeeded", "partial", "failed", "cancelled")


async def occurrence_of(session: Session, deployed: Deployment, job: str) -> Any:
    """Give the row of the night's occurrence of a job."""
    return await session.fetchrow(
        "select * from matins.occurrence where job = $1 and scheduled_at = $2 and variant = ''", job, deployed.night
    )


async def closed_occurrence(session: Session, deployed: Deployment, job: str, generation: int = 1) -> Any:
    """Wait until a generation of the night's occurrence is closed, and give its row."""

    async def look() -> Any:
        row = await occurrence_of(session, deployed, job)
        return row if row is not None and row["state"] in CLOSED and row["generation"] == generation else None

    return await until(look)


async def effects(session: Session, occurrence: Any) -> Counter[str]:
    """Count the committed effects of an occurrence by account."""
    rows = await session.fetch(
        "select account, count(*) as effects from effect where occurrence like $1 || ':%' group by account",
        occurrence["job"],
    )
    return Counter({row["account"]: row["effects"] for row in rows})


async def count(session: Session, query: str, *arguments: object) -> int:
    """Give the one number of a query."""
    return int(await session.fetchval(query, *arguments) or 0)


async def settled(session: Session, occurrence: Any) -> int:
    """Count the accounts of an occurrence that have ended."""
    return await count(
        session,
        "select count(*) from matins.ledger where occurrence_id = $1 and finished_at is not null",
        occurrence["id"],
    )


async def assert_night(
    session: Session, deployed: Deployment, job: str, accounts: int, *, state: str = "succeeded", generation: int = 1
) -> Any:
    """Wait for the end, and see that it was one: closed once, everything counted, one effect for each success."""
    row = await closed_occurrence(session, deployed, job, generation)
    assert row["state"] == state, row
    assert row["total"] == accounts == row["succeeded"] + row["failed"] + row["dead"] + row["cancelled"]
    by_state = {
        one["state"]: one["accounts"]
        for one in await session.fetch(
            "select state, count(*) as accounts from matins.ledger where occurrence_id = $1 group by state", row["id"]
        )
    }
    assert by_state == {name: row[name] for name in ("succeeded", "failed", "dead", "cancelled") if row[name] > 0}, (
        "the counts are those of the rows, and none is open"
    )
    kinds = Counter(
        one["kind"] for one in await session.fetch("select kind from matins.audit where occurrence_id = $1", row["id"])
    )
    assert kinds["claim"] == 1
    assert kinds["closed"] == generation, "closed once in each generation"
    return row


async def assert_one_effect_each(session: Session, occurrence: Any, accounts: int) -> None:
    """See that every account had exactly one effect."""
    found = await effects(session, occurrence)
    assert len(found) == accounts
    assert set(found.values()) == {1}, f"more than one: {[name for name, times in found.items() if times > 1][:10]}"


async def until_no_alert(session: Session) -> None:
    """Wait for the watch to have seen that all is well."""

    async def seen() -> bool:
        return not await session.fetchval(OPEN_ALERTS)

    await until(seen)
