"""The example's data: `python -m examples.billing.data --accounts 1000 --seed 1 --database URL`, and `… data mend`.

`make` (the default) makes the tables if they are missing, then the accounts. `mend` gives a tax id to every account
that lacks one, after which a re-run of the failed accounts succeeds.
"""

import argparse
import asyncio
import json
import sys
from dataclasses import asdict
from datetime import datetime, timedelta
from importlib import resources
from typing import Any

from examples.billing.accounts import Choice, Made, make_accounts
from shared.errors import MatinsError
from shared.postgres import Session, UniqueViolation, connect
from shared.settings import load_settings

__all__ = ["Choice", "Made", "make_accounts", "make_schema", "mend", "next_night"]

PATIENCE = timedelta(minutes=10)
LOCK = "select pg_advisory_xact_lock(hashtextextended('billing.schema', 0))"
NEXT_NIGHT = """
select night + case when night > clock_timestamp() then interval '0' else interval '1 day' end
  from (select (date_trunc('day', clock_timestamp() at time zone 'UTC') + interval '2 hours') at time zone 'UTC')
       as today (night)
"""
MEND = "update billing.account set tax_id = 'TAX-' || number where tax_id is null returning id"


async def make_schema(connection: Session, *, roles: bool = False) -> None:
    """Make what is missing of the schema `billing`, and with `roles` the jobs' roles; safe for any number at once."""
    async with connection.transaction():
        await connection.execute(LOCK)
        for name in ("schema.sql", "roles.sql") if roles else ("schema.sql",):
            await connection.execute(resources.files("examples.billing").joinpath(name).read_text(encoding="utf-8"))


async def mend(connection: Session) -> list[str]:
    """Give every account without a tax id one, and give their ids, sorted."""
    return sorted([row["id"] for row in await connection.fetch(MEND)])


async def next_night(connection: Session) -> datetime:
    """Give the coming 02:00 UTC by the database's clock."""
    night: datetime = await connection.fetchval(NEXT_NIGHT)
    return night


async def _act(chosen: argparse.Namespace) -> dict[str, Any]:
    connection = await connect(_database_url(chosen), name="billing-data", timeout=PATIENCE)
    try:
        if chosen.action == "mend":
            return {"mended": await mend(connection)}
        await make_schema(connection, roles=chosen.roles)
        choice = Choice(
            count=chosen.accounts,
            seed=chosen.seed,
            until=chosen.until or await next_night(connection),
            failing=chosen.failing,
            flaky=chosen.flaky,
            slow=chosen.slow,
            hostile=chosen.hostile,
            spread=chosen.spread,
        )
        made = asdict(await make_accounts(connection, choice, progress=lambda count: _progress(count, chosen.accounts)))
        return {**made, "until": made["until"].isoformat()}
    finally:
        await connection.close()


def _database_url(chosen: argparse.Namespace) -> str:
    return chosen.database or load_settings(need=frozenset({"database_url"})).secret("database_url")


def _progress(count: int, whole: int) -> None:
    print(f"{count:,} of {whole:,} accounts", file=sys.stderr, flush=True)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.billing.data", description="Make or mend the example's data."
    )
    parser.add_argument("action", nargs="?", choices=["make", "mend"], default="make")
    parser.add_argument("--database", help="postgresql://… (by default MATINS_DATABASE_URL)")
    parser.add_argument("--accounts", type=int, default=1000, help="how many to make (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same accounts (%(default)s)")
    parser.add_argument("--until", type=_instant, help="all are due at this instant (by default the coming 02:00 UTC)")
    parser.add_argument("--spread", action="store_true", help="let periods close on any day of the month")
    parser.add_argument("--failing", type=int, default=3, help="how many lack a tax id (%(default)s)")
    parser.add_argument("--flaky", type=int, default=2, help="how many fail twice, then succeed (%(default)s)")
    parser.add_argument("--slow", type=int, default=2, help="how many take long (%(default)s)")
    parser.add_argument(
        "--no-hostile", dest="hostile", action="store_false", help="leave the account with the odd id out"
    )
    parser.add_argument("--roles", action="store_true", help="make the jobs' database roles as well")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    return parser


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(text)
    return instant


def _sentence(outcome: dict[str, Any]) -> str:
    if "mended" in outcome:
        return f"{len(outcome['mended'])} accounts got a tax id."
    lists = "; ".join(f"{name}: {', '.join(outcome[name]) or 'none'}" for name in ("failing", "flaky", "slow"))
    return f"{outcome['count']:,} accounts, {outcome['readings']:,} readings, due at {outcome['until']}. {lists}."


def main(arguments: list[str]) -> int:
    """Make or mend; give the exit code: 1 if it could not be done, 2 for arguments that make no sense."""
    chosen = _arguments().parse_args(arguments)
    try:
        outcome = asyncio.run(_act(chosen))
    except UniqueViolation:
        # A second start of a deployment finds what the first one made.
        print(f"The accounts of seed {chosen.seed}, or the one with the odd id, are there already.", file=sys.stderr)
        return 0
    except MatinsError as error:
        print(error, file=sys.stderr)
        return 1
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(outcome, ensure_ascii=False) if chosen.json else _sentence(outcome))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
