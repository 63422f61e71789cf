"""Making accounts that look like a company's: the same seed gives the same rows, whatever the machine.

Among them are a known number that fail for good, that fail twice and then succeed, and that are slow, and one whose id
holds everything that breaks careless code.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

HOSTILE_ID = '007 o\'neil "Ω" 🧾'
FLAKY_TRIES = 2
DAY = timedelta(days=1)
ZONES = (
    *("UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Los_Angeles", "America/Sao_Paulo"),
    *("Asia/Tokyo", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Sydney", "Pacific/Auckland", "Pacific/Kiritimati"),
    *("Pacific/Pago_Pago", "Africa/Lagos"),
)
PLANS = (
    ("Solo", Decimal("9.00"), Decimal(100), Decimal("0.105")),
    ("Team", Decimal("49.90"), Decimal(1000), Decimal("0.0325")),
    ("Company", Decimal("499.00"), Decimal(25000), Decimal("0.012345")),
)
ACCOUNT_COLUMNS = ("id", "name", "plan", "anchor_day", "zone", "tax_id", "slow", "flaky", "created_at")
USAGE_COLUMNS = ("account", "at", "units")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What to make: `count` accounts, the given numbers of them odd, and no account odd in two ways.

    Every account's period closes in the 24 hours up to `until`, so that all are due in the occurrence of that instant;
    with `spread` the closing days are any of a month, and about one account in thirty is due in a night.
    """

    count: int
    seed: int
    until: datetime
    failing: int = 3
    flaky: int = 2
    slow: int = 2
    hostile: bool = True
    spread: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for numbers that cannot be had."""
        numbers = (self.failing, self.flaky, self.slow)
        if min(self.count, *numbers) < 0:
            raise ValueError("a number of accounts is negative")
        if sum(numbers) + self.hostile > self.count:
            raise ValueError(f"{sum(numbers) + self.hostile} odd accounts are more than {self.count}")
        if self.until.tzinfo is None:
            raise ValueError("`until` needs a zone")


@dataclass(frozen=True)
class Made:
    """What was made; the tuples hold ids."""

    count: int
    readings: int
    until: datetime
    failing: tuple[str, ...]
    flaky: tuple[str, ...]
    slow: tuple[str, ...]
    hostile: str | None


async def make_accounts(
    connection: Any,
    choice: Choice,
    *,
    batch_size: int = 10_000,
    progress: Callable[[int], None] = lambda _: None,
) -> Made:
    """Write the accounts and their usage in one transaction, and call `progress` with the number written so far.

    Raises UniqueViolation, with nothing written, when accounts of this seed are there already.
    """
    odd = _odd_ones(choice)
    writer = _written(choice, odd)
    ids: dict[str, list[str]] = {name: [] for name in ("failing", "flaky", "slow", "hostile")}
    accounts = readings = 0
    async with connection.transaction():
        await connection.executemany("insert into billing.plan values ($1, $2, $3, $4) on conflict do nothing", PLANS)
        while batch := list(islice(writer, batch_size)):
            usage = [reading for _, taken in batch for reading in taken]
            await _copy(connection, "account", ACCOUNT_COLUMNS, [row for row, _ in batch])
            await _copy(connection, "usage_event", USAGE_COLUMNS, usage)
            for position, (row, _) in enumerate(batch, accounts):
                if position in odd:
                    ids[odd[position]].append(row[0])
            accounts += len(batch)
            readings += len(usage)
            progress(accounts)
    await connection.execute("analyze billing.account, billing.usage_event")
    return Made(
        count=accounts,
        readings=readings,
        until=choice.until,
        failing=tuple(ids["failing"]),
        flaky=tuple(ids["flaky"]),
        slow=tuple(ids["slow"]),
        hostile=HOSTILE_ID if choice.hostile else None,
    )


async def _copy(connection: Any, table: str, columns: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
    await connection.copy_records_to_table(table, schema_name="billing", columns=columns, records=rows)


def _odd_ones(choice: Choice) -> dict[int, str]:
    kinds = (
        ["failing"] * choice.failing + ["flaky"] * choice.flaky + ["slow"] * choice.slow + ["hostile"] * choice.hostile
    )
    return dict(zip(_random(choice, "odd").sample(range(choice.count), len(kinds)), kinds, strict=True))


def _random(choice: Choice, purpose: str) -> Random:
    return Random(f"{choice.seed} {purpose}")  # noqa: S311 - must be the same each time; nothing here is secret


def _written(choice: Choice, odd: dict[int, str]) -> Iterator[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]:
    """Give each account's row and its usage."""
    random = _random(choice, "accounts")
    closing = closing_days(choice.until)
    for position in range(choice.count):
        kind = odd.get(position, "")
        # The order of the ids is not that of the numbers, by which they are paged.
        code = f"{random.getrandbits(24):06x}-{choice.seed}-{position}"
        account = HOSTILE_ID if kind == "hostile" else code
        zone = random.choice(list(closing))
        row = (
            account,
            f"Customer {position + 1}",
            random.choice(PLANS)[0],
            _anchor_day(random, None if choice.spread else closing[zone]),
            zone,
            None if kind == "failing" else f"TAX{random.randrange(10**9):09d}",
            kind == "slow",
            FLAKY_TRIES if kind == "flaky" else 0,
            choice.until - timedelta(days=70 + random.randrange(1000)),
        )
        yield row, _usage(random, account, choice.until)


def closing_days(until: datetime) -> dict[str, datetime]:
    """Give, by zone, the local midnight in the 24 hours up to `until`; a zone that has none is left out."""
    midnights = {}
    for zone in ZONES:
        midnight = until.astimezone(ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0)
        if until - DAY < midnight.astimezone(UTC) <= until:
            midnights[zone] = midnight
    return midnights


def _anchor_day(random: Random, closing: datetime | None) -> int:
    """Give an anchor that closes on the given day: on a month's last day, any from there to 31."""
    if closing is None:
        return random.randint(1, 31)
    ends_month = (closing.date() + DAY).day == 1
    return random.randint(closing.day, 31) if ends_month else closing.day


def _usage(random: Random, account: str, until: datetime) -> list[tuple[Any, ...]]:
    """Give one to four readings of the past weeks, and one of the last 24 hours."""
    ages = [random.randrange(86_400, 30 * 86_400) for _ in range(random.randint(1, 4))]
    return [
        (account, until - timedelta(seconds=age), Decimal(random.randrange(1, 2_000_000_000)).scaleb(-6))
        for age in (*ages, random.randrange(86_400))
    ]
