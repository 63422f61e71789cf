"""What an operator does about an alert: acknowledge, silence, unsilence. Each is one transaction behind its row's lock.

So of an order and of the watch, which closes or repeats the same alert, one comes first, and the other goes by what it
has left: an alert that is over is not acknowledged, and one that is acknowledged is not told again.
"""

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from shared.postgres import Row, Session, database_now, transaction
from shared.sql_files import statement
from shared.terminal import Refused
from trigger.alert_standing import AlertStanding, Reference, as_record, at, kind_of, standing_of, told_standing
from trigger.alerts import require_alert
from trigger.ends import Until, end_of
from trigger.operate import Order

LOCK_ALERT = statement("trigger", "lock_alert")
WRITE_ALERT = statement("trigger", "write_alert")

LONGEST_SILENCE = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Acted:
    """What became of an order: the alert's number and name, how it stands, whether that was changed, and a sentence."""

    alert: int
    name: str
    standing: AlertStanding
    changed: bool
    said: str


# Gives how the alert is to stand, and what is said of it; from its row, and the database's present.
_Decision: TypeAlias = Callable[[Row, AlertStanding, datetime], tuple[AlertStanding, str]]


async def acknowledge(session: Session, reference: Reference, order: Order, *, now: datetime | None = None) -> Acted:
    """Say that somebody knows of an alert: it is not told again, and the watch closes one of what happened for good.

    An acknowledged one stays as it is. Raises Refused when there is none, or it is over.
    """

    def decide(row: Row, before: AlertStanding, present: datetime) -> tuple[AlertStanding, str]:
        if before.acknowledged_at is not None:
            return before, f"is {told_standing(before, present, None)} already"
        _refuse_closed(row, before)
        by, why = order.actor, order.reason
        known = replace(before, acknowledged_at=present, acknowledged_by=by, acknowledge_reason=why)
        closes = "once it is over" if kind_of(row["kind"]).lasts else "at the watch's next look"
        return replace(known, next_notice_at=None), f"is acknowledged: it is not told again, and closes {closes}"

    return await _act(session, reference, "acknowledge", decide, order, now)


async def silence(
    session: Session, reference: Reference, until: Until, order: Order, *, now: datetime | None = None
) -> Acted:
    """Have an alert told to nobody until an instant, or for a time; then it is told again, if it is not over.

    A silence takes the place of the one before. Raises Refused when there is none, it is over or acknowledged, or the
    end lies in the past or more than LONGEST_SILENCE ahead.
    """

    def decide(row: Row, before: AlertStanding, present: datetime) -> tuple[AlertStanding, str]:
        _refuse_closed(row, before)
        if before.acknowledged_at is not None:
            raise Refused(f"{_name(row)} is {told_standing(before, present, None)}: it is not told again anyway")
        end = end_of(until, present, LONGEST_SILENCE, "a silence")
        if before.silenced(present) and before.silenced_until == end:
            return before, f"is {told_standing(before, present, None)} already"
        by, why = order.actor, order.reason
        after = replace(before, next_notice_at=end, silenced_until=end, silenced_by=by, silence_reason=why)
        return after, f"is silenced until {at(end)}, and then told again if it is not over"

    return await _act(session, reference, "silence", decide, order, now)


async def unsilence(session: Session, reference: Reference, order: Order, *, now: datetime | None = None) -> Acted:
    """End a silence before its time: the alert is told again at the watch's next look.

    One that is not silenced stays as it is. Raises Refused when there is none, or it is over.
    """

    def decide(row: Row, before: AlertStanding, present: datetime) -> tuple[AlertStanding, str]:
        _refuse_closed(row, before)
        if not before.silenced(present):
            return before, "is not silenced"
        heard = replace(before, silenced_until=None, silenced_by=None, silence_reason=None)
        if before.acknowledged_at is not None:
            return heard, "is no longer silenced; it is acknowledged, so it is not told again"
        return replace(heard, next_notice_at=present), "is no longer silenced: it is told again"

    return await _act(session, reference, "unsilence", decide, order, now)


async def _act(
    session: Session, reference: Reference, kind: str, decide: _Decision, order: Order, now: datetime | None
) -> Acted:
    """Lock an alert, decide how it is to stand, and write that with who decided it, if it is something else."""
    number = (await require_alert(session, reference))["id"]
    async with transaction(session):
        row: Any = await session.fetchrow(LOCK_ALERT, number)
        before = standing_of(row)
        after, said = decide(row, before, now or await database_now(session))
        if after != before:
            names = {"alert": number, "kind": row["kind"], "subject": row["subject"]}
            detail = names | {"before": as_record(before), "after": as_record(after)}
            by = (order.instance, order.actor, order.reason)
            await session.execute(WRITE_ALERT, number, *_written(after), kind, *by, detail)
        return Acted(number, _name(row), after, after != before, f"{_name(row)} {said}")


def _written(standing: AlertStanding) -> tuple[object, ...]:
    """Give what an order may change: whether an alert is over is the watch's to say."""
    return astuple(standing)[:-2]


def _name(row: Row) -> str:
    return f"{row['kind']}:{row['subject']}"


def _refuse_closed(row: Row, standing: AlertStanding) -> None:
    if standing.closed_at is not None:
        raise Refused(f"{_name(row)} is over since {at(standing.closed_at)}: {standing.close_reason}")
