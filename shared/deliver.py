"""The pass that delivers: gives a channel what there is to tell, takes what is due, sends it, and records how it went.

At least once: a message is recorded as delivered after the receiver has taken it, so a process that dies between the
two leaves it to be sent again, with the same id. Sending happens outside of any transaction, and is over before the
lease is, so that nobody else sends the same meanwhile, unless the process is frozen in between.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import anyio

from schemas.occurrence import Identity
from shared.channel_http import SEND_SECONDS, Outcome, post
from shared.channel_send import keep_firing, send
from shared.channels import Alertmanager, Channel, Ping
from shared.logs import FailureLog, logger
from shared.notice import Notice, read_notice
from shared.notice_formats import FIRES_FOR
from shared.ping import ping_request, run_id
from shared.postgres import Database, Session
from shared.sql_files import statement
from shared.telemetry import metrics

SPREAD_NOTIFICATIONS = statement("shared", "spread_notifications")
SPREAD_PINGS = statement("shared", "spread_pings")
TAKE_DELIVERIES = statement("shared", "take_deliveries")
SETTLE_DELIVERY = statement("shared", "settle_delivery")
TAKE_TURN = statement("shared", "take_turn")
STILL_OPEN = statement("shared", "still_open")

AT_ONCE: Final = 8
LEASE: Final = timedelta(seconds=4 * SEND_SECONDS)
FIRST_WAIT: Final = timedelta(seconds=5)
LONGEST_WAIT: Final = timedelta(minutes=10)
# What is told again and is waiting when the next of its thread is there says nothing more.
NO_LONGER_NEWS: Final = "repeated"
FIRING_AT_MOST = 1000
_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Delivering:
    """What a pass needs: the database, the channel, and who delivers, in which environment."""

    database: Database
    channel: Channel
    environment: str
    instance: str
    failures: FailureLog
    draw: Callable[[], float] = random.random


async def deliver_pass(delivering: Delivering, *, now: datetime | None = None) -> int:
    """Deliver what is due through one channel, at most AT_ONCE messages; give how many were taken.

    `now` stands for the database's clock, in tests.
    """
    channel = delivering.channel
    async with delivering.database.session() as session:
        await _spread(session, channel, now)
        taken = await session.fetch(TAKE_DELIVERIES, channel.name, delivering.instance, LEASE, AT_ONCE, now)
    async with anyio.create_task_group() as sending:
        for row in taken:
            sending.start_soon(_deliver, delivering, row, now)
    if isinstance(channel.target, Alertmanager):
        await _keep_firing(delivering, channel.target, now)
    return len(taken)


async def _spread(session: Session, channel: Channel, now: datetime | None) -> None:
    """Give the channel what there is to tell."""
    if isinstance(channel.target, Ping):
        await session.execute(SPREAD_PINGS, channel.name, channel.target.job, now)
        return
    chosen = (sorted(channel.kinds) or None, sorted(channel.unwanted), sorted(channel.jobs) or None)
    await session.execute(SPREAD_NOTIFICATIONS, channel.name, *chosen, channel.give_up_after, now)


async def _deliver(delivering: Delivering, row: Any, now: datetime | None) -> None:
    channel = delivering.channel
    if row["event"] == NO_LONGER_NEWS and row["overtaken"]:
        await _settle(delivering, row, "superseded", Outcome(), now)
        return
    if row["event"] != "closed" and row["now"] - row["waiting_since"] > channel.give_up_after:
        # Nobody had the channel meanwhile. An end is told all the same, since its beginning may have been.
        outcome = Outcome(_waited_too_long(row["error"]))
    elif isinstance(channel.target, Ping):
        outcome = await _ping(delivering, channel.target, row)
    else:
        try:
            notice = _notice(delivering, row)
        except (KeyError, TypeError, ValueError) as error:
            outcome = Outcome(f"the notification cannot be read: {type(error).__name__}")
        else:
            outcome = await send(channel, notice, row["now"])
    await _settle(delivering, row, "delivered" if outcome.delivered else "waiting", outcome, now)


def _waited_too_long(last_error: str | None) -> str:
    said = "it waited for longer than the channel gives"
    return said if last_error is None else f"{said}; the last attempt: {last_error}"


async def _ping(delivering: Delivering, target: Ping, row: Any) -> Outcome:
    """Tell a job's switch of a run: where it begins, and how it has ended."""
    run = str(Identity(row["job"], row["scheduled_at"], row["variant"]))
    state = "claimed" if row["event"] == "start" else row["state"]
    said = f"Matins, {delivering.environment}: {run}, generation {row['generation']}: {state}\n"
    identity = run_id(delivering.environment, f"{run}/{row['generation']}")
    return await post(ping_request(target, row["event"], identity, said), now=row["now"])


async def _settle(delivering: Delivering, row: Any, state: str, outcome: Outcome, now: datetime | None) -> None:
    channel = delivering.channel
    wait = max(wait_after(row["attempts"], delivering.draw()), outcome.wait or timedelta(0))
    async with delivering.database.session() as session:
        error = outcome.error or None
        arguments = (row["id"], row["attempts"], state, wait, error, channel.give_up_after, now)
        ended = await session.fetchval(SETTLE_DELIVERY, *arguments)
    if ended is None:
        # Another has it by now: this process was silent for longer than the lease.
        return
    metrics.notifications.add(1, channel=channel.name, outcome="failed" if ended == "waiting" else ended)
    told: dict[str, Any] = {
        "channel": channel.name,
        "message": row["id"],
        "attempts": row["attempts"],
    }
    if ended == "given_up":
        _log.error("a notification was given up", reason=outcome.error, **told)
    elif ended == "waiting":
        delivering.failures.failure(
            "a notification was not delivered", error_class=channel.name, reason=outcome.error, **told
        )


async def _keep_firing(delivering: Delivering, target: Alertmanager, now: datetime | None) -> None:
    """Tell an Alertmanager again of what is open, whoever's turn it is."""
    name = delivering.channel.name
    async with delivering.database.session() as session:
        # A turn may fail twice before the alert is taken for over.
        at = await session.fetchval(TAKE_TURN, name, FIRES_FOR / 4, now)
        rows = await session.fetch(STILL_OPEN, name, FIRING_AT_MOST) if at is not None else []
    notices = list(_readable(delivering, rows))
    if not notices:
        return
    outcome = await keep_firing(target, notices, at)
    if not outcome.delivered:
        told: dict[str, Any] = {"channel": name, "alerts": len(notices), "reason": outcome.error}
        delivering.failures.failure("alerts were not kept firing", error_class=name, **told)


def _readable(delivering: Delivering, rows: Iterable[Any]) -> Iterator[Notice]:
    """Give the notices, but for what another release may have written in a way that this one cannot read."""
    for row in rows:
        with suppress(KeyError, TypeError, ValueError):
            yield _notice(delivering, row)


def _notice(delivering: Delivering, row: Any) -> Notice:
    # After a restore of the database a number may come again, with another time.
    identity = f"matins-{delivering.environment}-{row['notification_id']}-{row['created_at']:%Y%m%dT%H%M%S}"
    return read_notice(identity, row["event"], row["body"])


def wait_after(attempts: int, drawn: float) -> timedelta:
    """Give the wait before the next attempt: doubled each time, shortened by up to a fifth by `drawn`, 0 to 1."""
    longest: timedelta = min(FIRST_WAIT * 2 ** min(attempts - 1, 20), LONGEST_WAIT)
    return longest * (1 - 0.2 * drawn)
