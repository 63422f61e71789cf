"""Which accounts are due: month ends, leap days, zones, clock changes, and windows of any length."""

from datetime import UTC, date, datetime, timedelta

import pytest

from examples.billing.accounts import ZONES
from examples.billing.jobs import DUE, USED
from shared.job import Window
from shared.postgres import Session
from tests.integration.examples.support import DAY, NIGHT, WINDOW, add_account, add_usage, read_source

CLOSINGS = "select period_start, period_end, starts_at, ends_at from billing.closings($1, $2, $3, $4)"


def night(text: str) -> Window:
    until = datetime.fromisoformat(f"{text}T02:00Z")
    return Window(until - DAY, until)


@pytest.mark.parametrize(
    ("anchor_day", "zone", "due_on"),
    [
        (25, "UTC", "2026-08-25"),
        (1, "UTC", "2026-01-01"),
        (31, "UTC", "2026-01-31"),
        (31, "UTC", "2026-02-28"),
        (29, "UTC", "2026-02-28"),
        (28, "UTC", "2026-02-28"),
        (31, "UTC", "2026-04-30"),
        (30, "UTC", "2026-04-30"),
        (29, "UTC", "2028-02-29"),
        (31, "UTC", "2028-02-29"),
        (28, "UTC", "2028-02-28"),
        (29, "UTC", "2100-02-28"),
        (1, "Europe/Berlin", "2026-03-01"),
        (1, "Pacific/Kiritimati", "2026-03-01"),
        (1, "Pacific/Pago_Pago", "2026-03-02"),
        (31, "America/New_York", "2026-03-01"),
        (8, "America/New_York", "2026-03-09"),
        (1, "Asia/Kathmandu", "2026-01-01"),
        (4, "America/Sao_Paulo", "2018-11-05"),
        (2, "America/Havana", "2025-11-03"),
        (30, "Pacific/Apia", "2011-12-31"),
    ],
)
async def test_an_account_is_due_in_one_night(billing: Session, anchor_day: int, zone: str, due_on: str) -> None:
    created = datetime(2000, 1, 1, tzinfo=UTC)
    await add_account(billing, "only", anchor_day=anchor_day, zone=zone, created_at=created)
    window = night(due_on)
    before = Window(window.since - DAY, window.since)
    after = Window(window.until, window.until + DAY)
    assert [await read_source(billing, DUE, one) for one in (before, window, after)] == [[], ["only"], []]


@pytest.mark.parametrize(
    ("anchor_day", "zone", "midnight"),
    [
        (4, "America/Sao_Paulo", "2018-11-04T03:00Z"),
        (2, "America/Havana", "2025-11-02T05:00Z"),
        (29, "Europe/Berlin", "2026-03-28T23:00Z"),
        (30, "Europe/Berlin", "2026-03-29T22:00Z"),
        (30, "Pacific/Apia", "2011-12-30T10:00Z"),
    ],
)
async def test_a_period_ends_at_local_midnight(billing: Session, anchor_day: int, zone: str, midnight: str) -> None:
    ends_at = datetime.fromisoformat(midnight)
    around = (ends_at - timedelta(hours=3), ends_at + timedelta(hours=3))
    assert [row["ends_at"] for row in await billing.fetch(CLOSINGS, anchor_day, zone, *around)] == [ends_at]


async def test_a_window_leaves_its_beginning_out_and_takes_its_end_in(billing: Session) -> None:
    midnight = NIGHT.replace(hour=0)
    assert await billing.fetch(CLOSINGS, 25, "UTC", midnight, midnight + DAY) == []
    assert len(await billing.fetch(CLOSINGS, 25, "UTC", midnight - DAY, midnight)) == 1


async def test_every_account_closes_once_a_month_through_years_of_nights(billing: Session) -> None:
    odd = await billing.fetch(
        """
        select anchor, zone, count(*), count(distinct date_trunc('month', period_end))
          from generate_series(timestamptz '2027-01-15 02:00Z', '2029-01-14 02:00Z', interval '1 day') as night
         cross join generate_series(1, 31) as anchor
         cross join unnest($1::text[]) as zone
         cross join billing.closings(anchor, zone, night - interval '1 day', night)
         where anchor = any (billing.anchors_near(night - interval '1 day', night))
         group by anchor, zone
        having count(*) <> 24 or count(distinct date_trunc('month', period_end)) <> 24
            or bool_or(starts_at >= ends_at)
        """,
        ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin"],
    )
    assert odd == []


async def test_periods_follow_each_other_and_hold_their_instants(billing: Session) -> None:
    wrong = await billing.fetch(
        """
        with period as (
            select anchor, zone, closing.*,
                   lag(period_end) over (partition by anchor, zone order by period_end) as before
              from generate_series(1, 31) as anchor
             cross join unnest($1::text[]) as zone
             cross join billing.closings(anchor, zone, '2027-01-15 02:00Z', '2029-01-14 02:00Z') as closing)
        select * from period
         where before <> period_start
            or billing.period_start(starts_at, anchor, zone) <> period_start
            or billing.period_start(ends_at - interval '1 microsecond', anchor, zone) <> period_start
            or billing.period_start(ends_at, anchor, zone) <> period_end
        """,
        [*ZONES, "America/Havana"],
    )
    assert wrong == []


async def test_a_window_of_months_names_an_account_once(billing: Session) -> None:
    await add_account(billing, "only")
    assert await read_source(billing, DUE, Window(NIGHT - 70 * DAY, NIGHT)) == ["only"]


async def test_what_closed_before_an_account_existed_is_not_due(billing: Session) -> None:
    closed = NIGHT.replace(hour=0)
    await add_account(billing, "before", created_at=closed - timedelta(seconds=1))
    await add_account(billing, "after", created_at=closed)
    assert await read_source(billing, DUE) == ["before"]


async def test_accounts_are_read_in_the_order_of_their_numbers(billing: Session) -> None:
    for account in ("b", "a", "Z", "007"):
        await add_account(billing, account)
        await add_usage(billing, account, WINDOW.until, "1")
    assert await read_source(billing, DUE) == ["b", "a", "Z", "007"]
    assert await read_source(billing, USED) == ["b", "a", "Z", "007"]


async def test_usage_outside_the_window_names_no_account(billing: Session) -> None:
    await add_account(billing, "early")
    await add_usage(billing, "early", WINDOW.since, "1")
    await add_account(billing, "late")
    await add_usage(billing, "late", WINDOW.until + timedelta(microseconds=1), "1")
    assert await read_source(billing, USED) == []


async def test_a_long_window_has_every_anchor_near(billing: Session) -> None:
    near = await billing.fetchval("select billing.anchors_near($1, $2)", NIGHT - 40 * DAY, NIGHT)
    assert near == list(range(1, 32))


async def test_the_last_day_of_february_has_the_later_anchors_near(billing: Session) -> None:
    noon = datetime(2026, 2, 28, 12, tzinfo=UTC)
    near = await billing.fetchval("select billing.anchors_near($1, $2)", noon, noon)
    assert near == [1, 27, 28, 29, 30, 31]


async def test_closing_days_are_clamped_to_the_month(billing: Session) -> None:
    days = await billing.fetch(
        "select billing.closing_day(month::timestamp, 31) as day from unnest($1::date[]) as month",
        [date(2026, 2, 1), date(2028, 2, 29), date(2026, 4, 30), date(2026, 12, 31)],
    )
    assert [row["day"] for row in days] == [date(2026, 2, 28), date(2028, 2, 29), date(2026, 4, 30), date(2026, 12, 31)]
