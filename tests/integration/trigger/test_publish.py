from datetime import timedelta

import pytest

from shared.job import Job, SetBased
from shared.postgres import Database, Session
from tests.integration.trigger.support import DUE, HOUR, LEASE, Broker, claimant, claimed, fanned_out, fill, job_at
from trigger.claim import Claim
from trigger.fan_out import FanOut, FanOutEnd, write_page
from trigger.pages import Page
from trigger.publish import Published, Publishing, publish_pass

NOW = DUE + HOUR


def publishing(
    database: Database, job: Job, broker: Broker, *, bound: int = 100_000, holder: str = "one"
) -> Publishing:
    return Publishing(database, job, broker.send, "test.work", holder, LEASE, bound, now=NOW)


async def ready(database: Database, session: Session, count: int, job: Job | None = None) -> tuple[Job, Claim]:
    """Fan out some accounts."""
    await fill(session, count)
    job = job or job_at()
    claim = await claimed(session, job)
    assert await fanned_out(database, job, claim) is FanOutEnd.SEALED
    return job, claim


async def watermark(session: Session, claim: Claim) -> int | None:
    found: int | None = await session.fetchval(
        "select max(through_position) from matins.publication where occurrence_id = $1", claim.id
    )
    return found


def named(*numbers: int) -> list[str]:
    return [f"account-{number:05d}" for number in numbers]


async def test_every_account_is_published_once_in_order(database: Database, session: Session) -> None:
    job, claim = await ready(database, session, 2501)
    broker = Broker()
    passes = 0
    while (await publish_pass(publishing(database, job, broker))).more:
        passes += 1
    assert passes == 2
    assert broker.accounts() == named(*range(1, 2502))
    assert await watermark(session, claim) == 2501
    assert await publish_pass(publishing(database, job, broker)) == Published(room=100_000 - 2501)
    message = broker.messages[0]
    assert (message.job, message.occurrence_id, message.scheduled_at, message.generation, message.epoch) == (
        "nightly",
        claim.id,
        DUE,
        1,
        claim.epoch,
    )
    assert message.published_at == NOW


async def test_chunks_are_of_the_handlers_size(database: Database, session: Session) -> None:
    job, _ = await ready(database, session, 25, job_at(handler=SetBased("billing.usage:roll_up", chunk_size=10)))
    broker = Broker()
    await publish_pass(publishing(database, job, broker))
    assert [len(message.accounts) for message in broker.messages] == [10, 10, 5]


async def test_only_what_was_confirmed_without_a_gap_moves_the_watermark(database: Database, session: Session) -> None:
    job, claim = await ready(database, session, 10)
    broker = Broker()
    broker.refused = {4, 7}
    done = await publish_pass(publishing(database, job, broker))
    assert (done.accounts, done.failed, done.more) == (3, 7, False)
    assert await watermark(session, claim) == 3
    await publish_pass(publishing(database, job, broker))
    assert await watermark(session, claim) == 10
    assert set(broker.accounts()) == set(named(*range(1, 11)))
    assert broker.accounts().count("account-00001") == 1


async def test_a_broker_that_confirms_nothing_moves_nothing(database: Database, session: Session) -> None:
    job, claim = await ready(database, session, 3)
    broker = Broker()
    broker.refused = {1, 2, 3}
    await publish_pass(publishing(database, job, broker))
    assert await watermark(session, claim) is None


async def test_one_publisher_at_a_time_holds_the_job(database: Database, session: Session) -> None:
    job, _ = await ready(database, session, 3)
    broker = Broker()
    await publish_pass(publishing(database, job, broker))
    other = Broker()
    assert await publish_pass(publishing(database, job, other, holder="two")) == Published()
    await session.execute("update matins.lease set until = $1", NOW - LEASE)
    assert (await publish_pass(publishing(database, job, other, holder="two"))).room > 0


async def test_one_that_cannot_publish_lets_another_try(database: Database, session: Session) -> None:
    job, _ = await ready(database, session, 3)
    broken, whole = Broker(), Broker()
    broken.refused = {1}
    assert (await publish_pass(publishing(database, job, broken))).failed == 3
    assert (await publish_pass(publishing(database, job, whole, holder="two"))).accounts == 3


async def test_what_is_in_flight_holds_the_publisher_back(database: Database, session: Session) -> None:
    job, claim = await ready(database, session, 100)
    broker = Broker()
    done = await publish_pass(publishing(database, job, broker, bound=30))
    assert (done.accounts, done.held_back) == (30, True)
    assert (await publish_pass(publishing(database, job, broker, bound=30))).accounts == 0
    await _settle(session, claim, named(1, 2, 3, 4))
    # A row that waits for its retry is not in flight; one that runs is.
    await session.execute(
        """update matins.ledger set epoch = 1, attempts = 1, not_before = $2, published_at = $3
            where occurrence_id = $1 and account = 'account-00005'""",
        claim.id,
        NOW + HOUR,
        NOW,
    )
    await session.execute(
        """update matins.ledger set epoch = 1, state = 'running', lease_until = $2
            where occurrence_id = $1 and account = 'account-00006'""",
        claim.id,
        NOW + HOUR,
    )
    assert (await publish_pass(publishing(database, job, broker, bound=30))).accounts == 5
    assert broker.accounts() == named(*range(1, 36))


async def test_chunks_wait_for_room_for_a_whole_one(database: Database, session: Session) -> None:
    job, claim = await ready(database, session, 100, job_at(handler=SetBased("billing.usage:roll_up", chunk_size=10)))
    broker = Broker()
    await publish_pass(publishing(database, job, broker, bound=25))
    await _settle(session, claim, named(1, 2, 3, 4))
    done = await publish_pass(publishing(database, job, broker, bound=25))
    assert (done.accounts, done.held_back) == (0, True)
    await _settle(session, claim, named(5, 6, 7, 8, 9, 10))
    assert (await publish_pass(publishing(database, job, broker, bound=25))).accounts == 10


async def _settle(session: Session, claim: Claim, accounts: list[str]) -> None:
    await session.execute(
        """update matins.ledger set state = 'succeeded', finished_at = $3, epoch = epoch + 1
            where occurrence_id = $1 and account = any($2)""",
        claim.id,
        accounts,
        NOW,
    )


async def _open_again(session: Session, claim: Claim, account: str, **columns: object) -> None:
    """Have an account published again, as a retry, a sweep or a re-run does."""
    await session.execute(
        """update matins.ledger
              set epoch = epoch + 1, published_at = null, not_before = $3, attempts = $4, isolated = $5
            where occurrence_id = $1 and account = $2""",
        claim.id,
        account,
        columns.get("not_before"),
        columns.get("attempts", 0),
        columns.get("isolated", False),
    )


async def test_what_must_be_published_again_is_and_only_once(database: Database, session: Session) -> None:
    job, claim = await ready(database, session, 20, job_at(handler=SetBased("billing.usage:roll_up", chunk_size=10)))
    broker = Broker()
    await publish_pass(publishing(database, job, broker))
    broker.messages.clear()
    for number in (3, 5, 7):
        await _open_again(session, claim, *named(number))
    await _open_again(session, claim, *named(9), attempts=1)
    await _open_again(session, claim, *named(11), isolated=True)
    await publish_pass(publishing(database, job, broker))
    assert [list(message.accounts) for message in broker.messages] == [named(3, 5, 7), named(9), named(11)]
    assert [message.isolated for message in broker.messages] == [False, False, True]
    broker.messages.clear()
    await publish_pass(publishing(database, job, broker))
    assert broker.messages == []


async def test_a_retry_is_left_to_its_own_message_until_the_grace_is_over(database: Database, session: Session) -> None:
    job, claim = await ready(database, session, 2)
    broker = Broker()
    await publish_pass(publishing(database, job, broker))
    broker.messages.clear()
    await _open_again(session, claim, *named(1), attempts=1, not_before=NOW - timedelta(seconds=4))
    await _open_again(session, claim, *named(2), attempts=1, not_before=NOW - timedelta(seconds=6))
    await publish_pass(publishing(database, job, broker))
    assert broker.accounts() == named(2)


async def test_a_row_that_is_executed_is_neither_waited_for_nor_published(
    database: Database, session: Session, other_session: Session
) -> None:
    job, claim = await ready(database, session, 2)
    broker = Broker()
    await publish_pass(publishing(database, job, broker))
    broker.messages.clear()
    for number in (1, 2):
        await _open_again(session, claim, *named(number))
    async with other_session.transaction():
        await other_session.execute("select from matins.ledger where account = 'account-00001' for update")
        await publish_pass(publishing(database, job, broker))
        assert broker.accounts() == named(2)
    await publish_pass(publishing(database, job, broker))
    assert broker.accounts() == named(2, 1)


async def test_a_mark_states_the_epoch_that_was_read(database: Database, session: Session) -> None:
    job, claim = await ready(database, session, 1)
    broker = Broker()
    await publish_pass(publishing(database, job, broker))
    await _open_again(session, claim, *named(1))

    async def moved_meanwhile(outgoing: object) -> list[None]:
        await _open_again(session, claim, *named(1))
        return [None]

    work = publishing(database, job, broker)
    await publish_pass(Publishing(database, job, moved_meanwhile, "test.work", "one", LEASE, 10, now=NOW))  # type: ignore[arg-type] # gives no failures
    broker.messages.clear()
    await publish_pass(work)
    assert broker.accounts() == named(1)


async def test_accounts_that_failed_to_be_published_again_stay_unmarked(database: Database, session: Session) -> None:
    job, claim = await ready(database, session, 3)
    broker = Broker()
    await publish_pass(publishing(database, job, broker))
    for number in (1, 2, 3):
        await _open_again(session, claim, *named(number))
    broker.messages.clear()
    broker.refused = {5}
    assert (await publish_pass(publishing(database, job, broker))).failed == 1
    await publish_pass(publishing(database, job, broker))
    assert broker.accounts() == named(1, 3, 2)


async def test_a_rerun_of_what_was_never_published_moves_the_watermark_to_the_end(
    database: Database, session: Session
) -> None:
    job, claim = await ready(database, session, 10)
    for number in range(1, 11):
        await _open_again(session, claim, *named(number))
    broker = Broker()
    await publish_pass(publishing(database, job, broker))
    assert broker.accounts() == named(*range(1, 11))
    assert await watermark(session, claim) == 10
    done = await publish_pass(publishing(database, job, broker, bound=10))
    assert (done.room, done.held_back) == (0, True)


@pytest.mark.parametrize("ending", ["cancel", "deadline", "fan_out"])
async def test_nothing_is_published_once_dispatch_has_ended(database: Database, session: Session, ending: str) -> None:
    job, _ = await ready(database, session, 3)
    await session.execute("update matins.occurrence set ending = $1", ending)
    broker = Broker()
    await publish_pass(publishing(database, job, broker))
    assert broker.messages == []


async def test_publishing_goes_on_while_the_fan_out_does(database: Database, session: Session) -> None:
    job = job_at()
    claim = await claimed(session, job)
    broker = Broker()
    work = FanOut(database, job, claimant(), now=NOW)
    for number, name in enumerate("abc", 1):
        moved = await write_page(work, claim, Page((name,), name, last=False))
        assert moved is not None
        claim = moved
        await publish_pass(publishing(database, job, broker))
        assert await watermark(session, claim) == number
    assert broker.accounts() == ["a", "b", "c"]
