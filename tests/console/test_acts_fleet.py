"""Redriving from the page of the fleet: shown first, done in a person's name, and refused as plainly as it is done."""

from examples.servers.find import Broker
from tests.console.reading import shown
from tests.console.serving import serving
from tests.console.test_acts import ANN, Operator, operator
from tests.console.visitor import Visitor, access_by
from tests.integration.operate.test_redrive import night_on
from tests.support.broker_users import broker_users
from tests.support.fleet import until
from tests.support.openid import running_provider


async def test_parked_messages_are_shown_and_published_again(
    database_url: str, broker: Broker, broker_url: str, prefix: str
) -> None:
    async with night_on(database_url, broker_url, prefix) as night:
        first, second = await night.park(night.body("a")), await night.park(b"{")
        with running_provider(**ANN) as provider:
            access = access_by(provider)
            async with serving(database_url, broker_url, prefix=prefix, console_access=access) as console:
                ann = Visitor(console)
                await ann.sign_in()
                here = Operator(ann, night.session, "")

                async def offered() -> bool:
                    return 'action="/fleet/redrive"' in (await ann.get("/fleet")).text

                await until(offered)
                asked = await here.order("/fleet/redrive", which="all")
                rows = {row[0]: row[1:] for row in shown(asked.text).table("preview")}
                would = "1 of its 1 accounts would be run"
                assert rows[first] == ["invoice-run:2026-08-25T02:00Z", "a", "rejected", would]
                assert rows[second][-1].startswith("no: it cannot be read")
                assert await night.entries() == []
                told = await here.done("/fleet/redrive", which="chosen", message=f"{first}\r\nnobody", sure="yes")
                assert "1 messages were published again, for 1 accounts that wait; 1 are parked" in told
                assert "'nobody' is not parked" in told
                (entry,) = await night.entries()
                assert (entry["actor"], entry["reason"]) == ("ann@example.com", "the price list is mended")
                assert "goes with “those below”" in await here.refused(422, "/fleet/redrive", which="chosen")


async def test_a_console_whose_user_may_not_says_so(
    database_url: str, broker: Broker, broker_url: str, prefix: str
) -> None:
    async with night_on(database_url, broker_url, prefix) as night:
        await night.park(night.body("a"))
        with broker_users(broker, broker_url, prefix) as addresses, running_provider(**ANN) as provider:
            access = access_by(provider)
            async with serving(database_url, addresses["trigger"], prefix=prefix, console_access=access) as console:
                ann = Visitor(console)
                await ann.sign_in()
                here = Operator(ann, night.session, "")
                assert "ACCESS_REFUSED" in await here.refused(409, "/fleet/redrive", which="all", sure="yes")
        assert await night.entries() == []


async def test_a_console_without_a_broker_says_so(database_url: str) -> None:
    async with operator(database_url) as here:
        assert "MATINS_BROKER_URL is not set" in await here.refused(422, "/fleet/redrive", which="all")
