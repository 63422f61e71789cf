"""What must hold when the night is over, asked of tables and payment provider by the demo's own queries."""

import json
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from examples.billing.demo.screen import Check
from shared.postgres import Session

FAILING_JOBS = ("invoice-run", "usage-rollup")
OCCURRENCES = """
select o.*, attempted.attempts, attempted.wins,
       (select count(*) from matins.audit a where a.occurrence_id = o.id and a.kind = 'closed') as closed,
       (select count(*) from matins.audit a where a.occurrence_id = o.id and a.kind = 'takeover') as takeovers,
       (select count(*) from matins.ledger l where l.occurrence_id = o.id) as rows,
       (select count(*) from matins.ledger l where l.occurrence_id = o.id and l.finished_at is null) as open,
       (select count(*) from matins.ledger l where l.occurrence_id = o.id and l.state = 'succeeded') as good,
       (select count(*) from matins.ledger l where l.occurrence_id = o.id and l.epoch = 0) as untouched
  from matins.occurrence o,
       lateral (select count(*) as attempts, count(*) filter (where a.won) as wins
                  from matins.attempt a where a.job = o.job and a.scheduled_at = o.scheduled_at) as attempted
 where o.scheduled_at = $1 and o.variant = '' order by o.job
"""
INVOICES = """
select count(*) as invoices, count(distinct account) as accounts,
       count(*) filter (where account = any ($1::text[])) as of_failing
  from billing.invoice
"""
TOUCHES = """
select count(*) as effects, count(distinct account) as accounts from billing.touch where occurrence like $1 || ':%'
"""
LATEST_TOUCH = "select coalesce(max(txid), 0) from billing.touch"
TOUCHED_SINCE = "select account from billing.touch where txid > $1 and occurrence like $2 || ':%' order by 1"


@dataclass(frozen=True, slots=True)
class Expected:
    """What the demo knows of the night: when it was, its accounts, those that fail, and what was broken."""

    night: datetime
    accounts: int
    failing: tuple[str, ...]
    triggers: int
    taken_over: str

    def name(self, job: str) -> str:
        """Give the name of the night's occurrence of a job."""
        return f"{job}:{self.night:%Y-%m-%dT%H:%MZ}"


async def night_checks(session: Session, expected: Expected, payments: str) -> list[Check]:
    """Check everything after the first run."""
    rows = {row["job"]: row for row in await session.fetch(OCCURRENCES, expected.night)}
    checks = [one for job, row in rows.items() for one in _occurrence_checks(job, row, expected)]
    checks += [one for job in FAILING_JOBS for one in _failing_checks(job, rows[job], expected)]
    checks += await _effect_checks(session, expected, succeeded=expected.accounts - len(expected.failing))
    return [*checks, _charge_check(expected, payments)]


async def rerun_checks(session: Session, expected: Expected, since: int, payments: str) -> list[Check]:
    """Check everything after the re-run of what had failed; `since` is the last transaction before it."""
    rows = {row["job"]: row for row in await session.fetch(OCCURRENCES, expected.night)}
    checks = []
    for job in FAILING_JOBS:
        row = rows[job]
        touched = [one["account"] for one in await session.fetch(TOUCHED_SINCE, since, job)]
        found = f"{len(touched)} effects"
        checks += [
            Check(f"{job}: exactly the failed accounts were run again", touched == sorted(expected.failing), found),
            Check(
                f"{job}: succeeded, in generation 2, with every account",
                row["state"] == "succeeded" and row["generation"] == 2 and row["succeeded"] == expected.accounts,  # noqa: PLR2004 - the first re-run
                f"{row['state']}, {row['succeeded']} of {row['total']}",
            ),
            Check(f"{job}: closed once in each generation", row["closed"] == row["generation"]),
        ]
    checks += await _effect_checks(session, expected, succeeded=expected.accounts)
    return [*checks, _charge_check(expected, payments)]


async def latest_touch(session: Session) -> int:
    """Give the last transaction that had an effect."""
    found: int = await session.fetchval(LATEST_TOUCH)
    return found


def _occurrence_checks(job: str, row: Any, expected: Expected) -> Iterable[Check]:
    triggers, accounts = expected.triggers, expected.accounts
    yield Check(
        f"{job}: one win of {triggers} attempts",
        row["wins"] == 1 and row["attempts"] == triggers,
        f"{row['wins']} of {row['attempts']}",
    )
    ended = row["succeeded"] + row["failed"] + row["dead"] + row["cancelled"]
    yield Check(
        f"{job}: total = succeeded + failed + dead + cancelled = accounts",
        row["total"] == ended == accounts == row["rows"],
        f"{row['total']} = {row['succeeded']} + {row['failed']} + {row['dead']} + {row['cancelled']}",
    )
    yield Check(
        f"{job}: nothing is left open", row["open"] == 0 and row["closed_at"] is not None, f"{row['open']} open"
    )
    yield Check(f"{job}: closed once", row["closed"] == 1, str(row["closed"]))
    yield Check(
        f"{job}: the claim's epoch counts its takeovers, and every account's has moved on",
        row["epoch"] == 1 + row["takeovers"] and row["untouched"] == 0,
        f"epoch {row['epoch']}, {row['takeovers']} takeovers",
    )
    if job == expected.taken_over:
        yield Check(f"{job}: another trigger went on where the killed one was", row["takeovers"] >= 1)
    if job not in FAILING_JOBS:
        yield Check(f"{job}: succeeded", row["state"] == "succeeded", row["state"])


def _failing_checks(job: str, row: Any, expected: Expected) -> Iterable[Check]:
    classes = row["report"]["error_classes"]
    named = sorted(account for one in classes for account in one["examples"])
    told = ", ".join(f"{one['error_class']}: {one['message']}" for one in classes)
    yield Check(
        f"{job}: partial, and its report names exactly the {len(expected.failing)} accounts that failed, and why",
        row["state"] == "partial" and row["failed"] == len(expected.failing) and named == sorted(expected.failing),
        told,
    )


async def _effect_checks(session: Session, expected: Expected, succeeded: int) -> list[Check]:
    row: Any = await session.fetchrow(INVOICES, list(expected.failing))
    checks = [
        Check(
            "billing: every account that succeeded has exactly one invoice",
            row["invoices"] == row["accounts"] == succeeded,
            f"{row['invoices']} invoices for {row['accounts']} accounts",
        )
    ]
    for job in FAILING_JOBS:
        row = await session.fetchrow(TOUCHES, job)
        checks.append(
            Check(
                f"billing: {job} had one effect for each account that succeeded",
                row["effects"] == row["accounts"] == succeeded,
                f"{row['effects']} effects on {row['accounts']} accounts",
            )
        )
    return checks


def _charge_check(expected: Expected, payments: str) -> Check:
    with urllib.request.urlopen(f"{payments}/calls", timeout=10) as answer:  # noqa: S310 - the demo's own provider
        counts = json.loads(answer.read())
    charged = [key["account"] for key in counts["keys"].values() if key["effects"]]
    return Check(
        "payments: every account was charged once, however often it was called",
        counts["effects"] == len(set(charged)) == expected.accounts,
        f"{counts['calls']} calls, {counts['effects']} charges, {counts['replays']} answered with the first receipt",
    )
