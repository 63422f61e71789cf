"""The one judge of every drill: what the database, the broker, the effects and the logs hold when it is over.

`record_history` before the run, `check` at quiet points of it and at its end. A rule that does not hold is a
`Violation`, which names the invariant, the row and what was seen; `docs/reliability.md` lists them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from shared.postgres import Session
from tests.support.checker_broker import judge_broker
from tests.support.checker_facts import gather, rows_of
from tests.support.checker_history import record_history
from tests.support.checker_rules import INVARIANTS, Violation, judge, judge_rest

__all__ = ["INVARIANTS", "Violation", "assert_none", "check", "record_history"]

MISSING_ACCOUNTS = """
select o.id as occurrence_id, asked.account from matins.occurrence o, ({query}) as asked (account)
 where o.job = $1 and o.sealed_at is not null
   and not exists (select from matins.ledger l where l.occurrence_id = o.id and l.account = asked.account)
 order by 1, 2 limit 40
"""
OUTSIDE = """
select l.occurrence_id, l.account, l.state from matins.ledger l
  join matins.occurrence o on o.id = l.occurrence_id
  join matins.job j on j.name = o.job
 where j.definition -> 'handler' ->> 'mode' = 'Outside' and l.state = 'succeeded' and not l.nothing_to_do
"""


async def check(
    session: Session,
    broker_url: str | None = None,
    *,
    at_rest: bool = True,
    effect_table: str | None = "effect",
    without_effects: Iterable[str] = (),
    outside_effects: Mapping[tuple[str, str], int] | None = None,
    accounts: Mapping[str, str] | None = None,
    logs: Iterable[Path] = (),
    secrets: Iterable[str] = (),
    strangers: int = 0,
    due_before: datetime | None = None,
    sessions: int = 0,
) -> list[Violation]:
    """Judge a run; nothing is changed by it.

    Args:
        session: a look at the run's database, where `record_history` was called before.
        broker_url: the run's broker; None leaves the queues out.
        at_rest: nothing is at work any more, so that nothing may be open, waiting or connected either.
        effect_table: where transactional jobs write a row (account, occurrence) for each effect; None: nowhere.
        without_effects: transactional jobs that write none.
        outside_effects: what the provider did, by (occurrence, account); None leaves it out.
        accounts: by job, a query for the accounts that every sealed occurrence of it must have a row for.
        logs: what the processes said.
        secrets: texts that must stand in none of the logs.
        strangers: parked messages without a row that the test has sent itself.
        due_before: at rest, what was due later may still wait; None: whatever is due now must have been decided.
        sessions: at rest, how many database sessions of the product may be left.
    """
    snapshot = await gather(session, effect_table, frozenset(without_effects))
    violations = list(judge(snapshot))
    for job, query in (accounts or {}).items():
        missing = await rows_of(session, MISSING_ACCOUNTS.format(query=query), job)
        violations += [Violation("account without a row", snapshot.named(row), "left out") for row in missing]
    if outside_effects is not None:
        rows = await session.fetch(OUTSIDE)
        succeeded = {(snapshot.names[row["occurrence_id"]], row["account"]) for row in rows}
        violations += judge_outside(succeeded, outside_effects)
    if at_rest:
        violations += judge_rest(snapshot, due_before=due_before, sessions=sessions)
    if broker_url is not None:
        violations += await judge_broker(session, broker_url, snapshot.topology, at_rest=at_rest, strangers=strangers)
    return [*violations, *judge_logs(logs, secrets)]


def judge_outside(succeeded: Iterable[tuple[str, str]], effects: Mapping[tuple[str, str], int]) -> Iterator[Violation]:
    """Compare what a provider that honours keys did with the rows that say that it did."""
    for occurrence, account in sorted(succeeded):
        if effects.get((occurrence, account), 0) == 0:
            yield Violation("effect missing", f"{occurrence} {account!r}", "succeeded, and the provider did nothing")
    for (occurrence, account), times in sorted(effects.items()):
        if times > 1:
            yield Violation("second effect", f"{occurrence} {account!r}", f"the provider did it {times} times")


def judge_logs(logs: Iterable[Path], secrets: Iterable[str]) -> Iterator[Violation]:
    """Find secrets in what was said. The secret itself is not repeated."""
    sought = [secret.encode() for secret in secrets]
    for path in logs:
        said = path.read_bytes()
        if any(secret in said for secret in sought):
            numbers = [n for n, line in enumerate(said.splitlines(), 1) if any(one in line for one in sought)]
            yield Violation("secret told", path.name, f"lines {numbers[:10]}")


def assert_none(violations: Sequence[Violation]) -> None:
    """Raise AssertionError with every violation, a line each."""
    told = "\n".join(str(one) for one in violations)
    assert not violations, f"{len(violations)} violations:\n{told}"
