"""Running a job once beside its schedule: an occurrence with an identity and a window of its own.

It stands in for no scheduled one: it moves no window, covers no instant, and counts for no catch-up.
"""

import secrets
from datetime import datetime, timedelta
from typing import Any

from schemas.occurrence import Identity, format_instant
from shared.postgres import Session, transaction
from shared.restore import READ_HOLD
from shared.sql_files import statement
from shared.terminal import Refused
from shared.zones import tzdata_version
from trigger.claim_outcome import Claimant, Fired, OnHold, Overlapped, Stale, Won
from trigger.decide import running_of, take
from trigger.locked_job import locked_job
from trigger.operate import NO_LEASE, Order
from trigger.plan import prepare_ledger

AD_HOC_INSTANT = statement("trigger", "ad_hoc_instant")
INSERT_AD_HOC = statement("trigger", "insert_ad_hoc")

VARIANT = "+ad-hoc-"


async def fire_ad_hoc(
    session: Session,
    job: str,
    order: Order,
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    region: str = "",
    now: datetime | None = None,
) -> Won | Overlapped | Stale | OnHold:
    """Write and claim an ad-hoc occurrence of this second; its lease is over at once, so that any trigger goes on.

    `since` and `until` are its window, by default from the last scheduled instant that was claimed to now. While
    another occurrence of the job runs, only `overlap="allow"` lets it begin; a pause does not keep it. Raises Refused
    for an unknown job, and for a window that ends before it begins, or is not over yet.
    """
    async with transaction(session):
        known = await locked_job(session, job)
        if known["retired_at"] is not None:
            return Stale(None)
        decisions = known["definition"]["decisions"]
        if (hindered := await _hindered(session, job, decisions)) is not None:
            return hindered
        identity = await _write(session, known, since, until, now)
        claim = await take(
            session,
            identity,
            known["revision"],
            Claimant(order.instance, region, NO_LEASE, order.host),
            timedelta(seconds=decisions["finish_within"]),
            fired=Fired(order.actor, order.reason),
            now=now,
        )
        if claim is None:
            raise Refused(f"{identity} cannot be claimed")
        return Won(claim)


async def _hindered(session: Session, job: str, decisions: dict[str, Any]) -> Overlapped | OnHold | None:
    held: Any = await session.fetchrow(READ_HOLD)
    if held is not None and held["held_since"] is not None:
        return OnHold(held["held_reason"])
    active = None if decisions["overlap"] == "allow" else await running_of(session, job)
    return None if active is None else Overlapped(str(active))


async def _write(
    session: Session, known: Any, since: datetime | None, until: datetime | None, now: datetime | None
) -> Identity:
    if known["definition"]["coordination"] == "every":
        raise Refused(f"{known['name']} is run by each worker for itself: there is nothing to run beside it")
    if known["definition"]["coordination"] == "elsewhere":
        raise Refused(f"{known['name']} runs elsewhere: there is nothing to run beside it here")
    usual: Any = await session.fetchrow(AD_HOC_INSTANT, known["name"], now)
    window = (since or usual["since"], until or usual["instant"])
    _refuse_window(window, usual["instant"])
    identity = Identity(known["name"], usual["instant"], VARIANT + secrets.token_hex(3))
    await prepare_ledger(session, identity.scheduled_at)
    await session.execute(
        INSERT_AD_HOC,
        identity.job,
        identity.scheduled_at,
        identity.variant,
        known["revision"],
        *window,
        tzdata_version(),
    )
    return identity


def _refuse_window(window: tuple[datetime, datetime], now: datetime) -> None:
    since, until = window
    if until > now:
        raise Refused(f"--until: {format_instant(until)} is still to come")
    if since > until:
        raise Refused(f"--since: {format_instant(since)} does not lie before --until, {format_instant(until)}")
