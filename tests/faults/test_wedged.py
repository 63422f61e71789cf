"""A process that lives and gets nowhere, or whose database answers too late: it loses its lease, and is fenced."""

from collections.abc import Awaitable, Callable

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.ledger import ledger
from tests.support.nights import assert_night, assert_one_effect_each, count, occurrence_of
from tests.support.processes import Deployment
from tests.support.proxy import Proxy

pytestmark = [pytest.mark.drill, pytest.mark.timeout(150)]

WEDGING_JOBS = """
WHO = os.environ.get("MATINS_EXAMPLE_WHO")


def wedge(name):
    if WHO == "wedged":
        (HERE / name).touch()
        while not (HERE / "go").exists():
            time.sleep(0.05)


async def numbers(call):
    for number in range(int(call.cursor or 0), 60):
        if number == 30:
            wedge("trigger-wedged")
        yield AccountAt(f"a{number:06d}", str(number + 1))


async def outside(call):
    if call.account == "a000001":
        wedge("worker-wedged")
    return WHO

jobs = [
    nightly("read", PerAccount(effect, timeout=seconds(5)), accounts=GeneratedAccounts(numbers, page_size=10)),
    nightly("called", Outside(outside, key_valid_for=hours(24))),
]
"""


async def test_an_event_loop_that_is_blocked_loses_its_lease(deployed: Deployment, session: Session) -> None:
    deployed.declare(WEDGING_JOBS)
    await deployed.deploy(5, fall=False)
    first = deployed.start("trigger", example_who="wedged")
    wedged = deployed.start("worker", example_who="wedged")
    for service in (first, wedged):
        await service.working()
    for job in ("called", "read"):
        await first.logged("job registered", job=job)
    await deployed.fall()
    await until(there(deployed, "trigger-wedged"))
    # Only now: the wedged one must be the one that claims.
    deployed.start("trigger", example_who="second")
    await until(there(deployed, "worker-wedged"))
    deployed.start("worker", example_who="second")
    # A process that blocks amid a transaction of its own holds its locks for as long as 30 seconds.
    let_go = """select count(*) = 0 from pg_stat_activity
                 where datname = current_database() and state = 'idle in transaction'"""
    await until(lambda: session.fetchval(let_go))
    row = await assert_night(session, deployed, "called", 5)
    assert (await ledger(session, row["id"]))["a000001"]["result"] == "second"
    row = await assert_night(session, deployed, "read", 60)
    await assert_one_effect_each(session, row, 60)
    (deployed.folder / "go").touch()
    await first.logged("fan-out was taken over")
    await wedged.logged("fenced")
    assert (await occurrence_of(session, deployed, "read"))["epoch"] == 2
    assert await count(session, "select count(*) from matins.audit where kind = 'closed'") == 2


def there(deployed: Deployment, name: str) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return (deployed.folder / name).exists()

    return look


SLOW_JOBS = """
async def numbers(call):
    for number in range(int(call.cursor or 0), 60):
        await anyio.sleep(0.02)
        yield AccountAt(f"a{number:06d}", str(number + 1))

jobs = [nightly("night", PerAccount(effect), accounts=GeneratedAccounts(numbers, page_size=10))]
"""


async def test_renewals_that_are_answered_later_than_the_lease_are_fenced(
    deployed: Deployment, session: Session
) -> None:
    deployed.declare(SLOW_JOBS)
    await deployed.deploy(0)
    async with Proxy(deployed.database_url) as proxy:
        slow = deployed.start("trigger", database_url=proxy.url)

        async def under_way() -> bool:
            return bool((await occurrence_of(session, deployed, "night"))["accounts_read"] >= 20)

        await until(under_way)
        proxy.to_client.delay = proxy.to_server.delay = 1.5
        deployed.start("trigger")
        deployed.start("worker")
        row = await assert_night(session, deployed, "night", 60)
        await assert_one_effect_each(session, row, 60)
        takeovers = await count(session, "select count(*) from matins.audit where kind = 'takeover'")
        assert row["epoch"] == 1 + takeovers
        assert takeovers >= 1, "its lease ran out while the answers were on their way"
        proxy.heal()
        await slow.logged("fan-out was taken over")
        slow.terminate()
        assert await slow.ended() == 0
