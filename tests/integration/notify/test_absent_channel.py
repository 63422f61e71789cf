"""A channel that nobody has declared for a while, and that is declared again."""

from datetime import timedelta

from shared.api_callers import read_key
from shared.channels import Webhook
from shared.deliver import TAKE_TURN
from shared.postgres import Database, Session
from tests.integration.notify.support import NOW, deliver, open_alert, tell, to
from tests.support.outside import new_key
from tests.support.receivers import Receiver, answering, http_receiver

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def webhook(receiver: Receiver) -> Webhook:
    return Webhook(receiver.url("/alerts"), (read_key(new_key()),))


async def test_it_is_told_nothing_of_what_is_long_ago_but_that_it_is_over(session: Session, database: Database) -> None:
    with http_receiver() as receiver:
        channel = to(webhook(receiver))
        waiting = await open_alert(session, subject="waits")
        await tell(session, waiting, "opened")
        receiver.answer = answering(500)
        await deliver(database, channel, NOW)
        await tell(session, waiting, "closed", at=NOW + HOUR)
        await deliver(database, channel, NOW + HOUR)
        # Nobody has the channel from here on.
        await tell(session, await open_alert(session, subject="long-ago", at=NOW + 2 * DAY), "opened", at=NOW + 2 * DAY)
        await tell(session, await open_alert(session, subject="new", at=NOW + 9 * DAY), "opened", at=NOW + 9 * DAY)
        del receiver.requests[:]
        receiver.answer = answering(200)
        for hours in range(3):
            await deliver(database, channel, NOW + 9 * DAY + hours * HOUR)
    told = [(one.json["type"], one.json["data"]["subject"]) for one in receiver.requests]
    assert sorted(told) == [("alert.closed", "waits"), ("alert.opened", "new")]


async def test_a_clock_that_is_set_back_loses_no_message_and_no_turn(session: Session, database: Database) -> None:
    with http_receiver() as receiver:
        channel = to(webhook(receiver))
        await tell(session, await open_alert(session, subject="ahead", at=NOW + 3 * HOUR), "opened", at=NOW + 3 * HOUR)
        await deliver(database, channel, NOW + 3 * HOUR)
        await tell(session, await open_alert(session, subject="right"), "opened")
        await deliver(database, channel, NOW + MINUTE)
    assert [one.json["data"]["subject"] for one in receiver.requests] == ["ahead", "right"]
    for at in (NOW + 3 * HOUR, NOW):
        assert await session.fetchval(TAKE_TURN, channel.name, MINUTE, at) == at
    assert await session.fetchval(TAKE_TURN, channel.name, MINUTE, NOW) is None
