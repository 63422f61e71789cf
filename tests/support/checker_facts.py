"""What the checker looks at: one consistent snapshot of the tables, counted in the server."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from schemas.occurrence import Identity
from shared.postgres import Row, Session

OCCURRENCES = """
select o.*, o.fan_out_error is not null as source_failed,
       j.definition -> 'handler' ->> 'mode' as mode,
       coalesce(r.definition ->> 'coordination' = 'elsewhere', false) as elsewhere,
       (r.definition ->> 'partial_ok')::double precision as partial_ok,
       to_regclass('matins.ledger_' || to_char(o.scheduled_at at time zone 'UTC', 'YYYY_MM')) is not null as kept,
       (select count(*) from matins.attempt a where a.won and a.job = o.job and a.scheduled_at = o.scheduled_at
           and a.variant = o.variant) as wins
  from matins.occurrence o
  left join matins.job j on j.name = o.job
  left join matins.job_revision r on r.job = o.job and r.revision = o.revision
 order by o.id
"""
LEDGER = """
select occurrence_id, count(*) as rows, count(distinct account) as accounts,
       count(*) filter (where state = 'succeeded') as succeeded, count(*) filter (where state = 'failed') as failed,
       count(*) filter (where state = 'dead') as dead, count(*) filter (where state = 'cancelled') as cancelled,
       count(*) filter (where finished_at is null) as open,
       count(*) filter (where state = 'succeeded' and nothing_to_do) as nothing_to_do,
       coalesce(sum(greatest(attempts - 1, 0)), 0)::bigint as retries,
       max(position) as last_position, count(distinct position) as positions, max(generation) as generation
  from matins.ledger group by occurrence_id
"""
ERRORS = """
select occurrence_id, state, error_class, count(*) as accounts
  from matins.ledger where state in ('failed', 'dead') group by 1, 2, 3
"""
EVENTS = "select occurrence_id, kind, detail from matins.audit where occurrence_id is not null order by id"
FAULTS = "select rule, occurrence_id, account, before, after from checker.fault order by id"
# Rows of the ledger that contradict themselves or their occurrence, each with the rule that it breaks.
STRAY_ROWS = """
select case when o.id is null then 'row without its occurrence'
            when l.scheduled_at <> o.scheduled_at then 'row of another instant'
            when l.generation > o.generation then 'row of a later generation'
            else 'try missing' end as rule,
       l.occurrence_id, l.account, l.state, l.attempts, l.generation, l.scheduled_at
  from matins.ledger l left join matins.occurrence o on o.id = l.occurrence_id
 where o.id is null or l.scheduled_at <> o.scheduled_at or l.generation > o.generation
    or (l.state in ('succeeded', 'failed') and l.error_class is distinct from 'invalid_account'
        and (l.attempts < 1 or l.epoch < 1 or l.started_at is null or l.worker is null))
    or (l.state = 'dead' and l.starts < 1)
 order by l.occurrence_id, l.account limit 40
"""
# Accounts that stand in a fan-out twice; the key of a partitioned table cannot forbid it across months.
TWICE = """
select occurrence_id, account, count(*) as rows from matins.ledger
 group by 1, 2 having count(*) > 1 order by 1, 2 limit 40
"""
# Effects against rows. $1 ids, $2 names of the occurrences whose effects lie in the table.
EFFECTS = """
with judged as (select * from unnest($1::bigint[], $2::text[]) as given (id, name))
, made as (
    select judged.id, e.account, count(*) as effects
      from {table} e join judged on judged.name = e.occurrence group by 1, 2)
, rows as (
    select l.occurrence_id as id, l.account, l.state, l.nothing_to_do
      from matins.ledger l join judged on judged.id = l.occurrence_id)
select coalesce(rows.id, made.id) as occurrence_id, coalesce(rows.account, made.account) as account,
       rows.state, coalesce(made.effects, 0) as effects
  from rows full join made on made.id = rows.id and made.account = rows.account
 where coalesce(made.effects, 0) <> (rows.state is not distinct from 'succeeded' and not rows.nothing_to_do)::integer
 order by 1, 2 limit 40
"""
# Effects of occurrences that there are not. $1 the names of those that there are.
LOST_EFFECTS = """
select e.occurrence, min(e.account) as account, count(*) as effects
  from {table} e where e.occurrence <> all ($1::text[]) group by e.occurrence order by 1 limit 40
"""
JOBS = "select name, known_since, planned_through, retired_at from matins.job order by name"
REVISIONS = "select job, revision, definition, effective_from from matins.job_revision order by job, revision"
SESSIONS = """
select pid, application_name as name, state, coalesce(left(query, 80), '') as query,
       exists (select from pg_locks l where l.pid = a.pid and not l.granted) as waits,
       exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'advisory') as locks
  from pg_stat_activity a
 where datname = current_database() and pid <> pg_backend_pid() and application_name like 'matins %'
"""


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the audit."""

    kind: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OccurrenceFacts:
    """An occurrence's row, what its ledger rows count to, and what the audit tells of it.

    `kept` is false when its ledger rows were dropped with their month.
    """

    row: Mapping[str, Any]
    name: str
    counted: Mapping[str, Any]
    errors: Mapping[tuple[str, str], int]
    events: Sequence[Event]

    @property
    def kept(self) -> bool:
        """Whether its ledger rows are still there."""
        return bool(self.row["kept"])


@dataclass(frozen=True, slots=True)
class EffectFault:
    """Effects of an account that are not what its row says; `state` None is an account without a row."""

    occurrence: str
    account: str
    state: str | None
    effects: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything of the database, as it was in one moment."""

    now: datetime
    occurrences: Sequence[OccurrenceFacts]
    effects: Sequence[EffectFault] = ()
    faults: Sequence[Mapping[str, Any]] = ()
    stray_rows: Sequence[Mapping[str, Any]] = ()
    twice: Sequence[Mapping[str, Any]] = ()
    jobs: Sequence[Mapping[str, Any]] = ()
    revisions: Sequence[Mapping[str, Any]] = ()
    sessions: Sequence[Mapping[str, Any]] = ()
    topology: Mapping[str, Any] | None = None
    names: Mapping[int, str] = field(default_factory=dict)

    def named(self, row: Mapping[str, Any]) -> str:
        """Name a row by its occurrence and, where it has one, its account."""
        occurrence = self.names.get(row["occurrence_id"], f"occurrence {row['occurrence_id']}")
        return occurrence if row["account"] is None else f"{occurrence} {row['account']!r}"


async def rows_of(session: Session, query: str, *arguments: object) -> list[Mapping[str, Any]]:
    """Give the rows of a query, by the names of their columns."""
    return [dict(row) for row in await session.fetch(query, *arguments)]


async def gather(session: Session, effect_table: str | None, without_effects: frozenset[str]) -> Snapshot:
    """Read everything in one transaction, so that no write lies between two looks; in the caller's, if it has one."""
    if session.is_in_transaction():
        return await _gather(session, effect_table, without_effects)
    async with session.transaction(isolation="repeatable_read", readonly=True):
        return await _gather(session, effect_table, without_effects)


async def _gather(session: Session, effect_table: str | None, without_effects: frozenset[str]) -> Snapshot:
    rows = await session.fetch(OCCURRENCES)
    names = {row["id"]: str(Identity(row["job"], row["scheduled_at"], row["variant"])) for row in rows}
    facts = await _occurrences(session, rows, names)
    judged = [
        one.row["id"]
        for one in facts
        if one.kept and one.row["mode"] in {"PerAccount", "SetBased"} and one.row["job"] not in without_effects
    ]
    return Snapshot(
        now=await session.fetchval("select clock_timestamp()"),
        occurrences=facts,
        effects=[] if effect_table is None else await _effects(session, effect_table, judged, names),
        faults=await rows_of(session, FAULTS),
        stray_rows=await rows_of(session, STRAY_ROWS),
        twice=await rows_of(session, TWICE),
        jobs=await rows_of(session, JOBS),
        revisions=await rows_of(session, REVISIONS),
        sessions=await rows_of(session, SESSIONS),
        topology=await session.fetchval("select topology from matins.environment"),
        names=names,
    )


async def _occurrences(session: Session, rows: Sequence[Row], names: Mapping[int, str]) -> list[OccurrenceFacts]:
    counted: dict[int, Mapping[str, Any]] = {row["occurrence_id"]: row for row in await rows_of(session, LEDGER)}
    errors: defaultdict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    for row in await session.fetch(ERRORS):
        errors[row["occurrence_id"]][(row["state"], row["error_class"])] = row["accounts"]
    events: defaultdict[int, list[Event]] = defaultdict(list)
    for row in await session.fetch(EVENTS):
        events[row["occurrence_id"]].append(Event(row["kind"], row["detail"]))
    return [
        OccurrenceFacts(
            dict(row), names[row["id"]], counted.get(row["id"], NOTHING), errors[row["id"]], events[row["id"]]
        )
        for row in rows
    ]


async def _effects(session: Session, table: str, judged: Sequence[int], names: Mapping[int, str]) -> list[EffectFault]:
    found = await session.fetch(EFFECTS.format(table=table), judged, [names[one] for one in judged])
    lost = await session.fetch(LOST_EFFECTS.format(table=table), list(names.values()))
    return [
        *(EffectFault(names[row["occurrence_id"]], row["account"], row["state"], row["effects"]) for row in found),
        *(EffectFault(row["occurrence"], row["account"], None, row["effects"]) for row in lost),
    ]


NOTHING: Mapping[str, Any] = dict.fromkeys(
    (
        "rows",
        "accounts",
        "succeeded",
        "failed",
        "dead",
        "cancelled",
        "open",
        "nothing_to_do",
        "retries",
        "last_position",
        "positions",
        "generation",
    ),
    0,
)
