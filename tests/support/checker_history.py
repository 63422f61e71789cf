"""Watching every write while a drill runs: what must never happen is written down in the transaction that does it.

Made by the tests, in a schema of their own; the product knows nothing of it, and nothing of it holds the product up.
"""

from collections.abc import Mapping
from typing import Any

from schemas.states import ACCOUNT_MOVES, CLOSED, OCCURRENCE_MOVES
from shared.postgres import Session

OVER = tuple(state.value for state in CLOSED)
# Rule and condition of each fault, of `old` and `new`; every rule is named once in `checker_rules.INVARIANTS` too.
_OCCURRENCE = {
    "terminal state left": """old.state in {over} and old.state <> new.state
                              and new.generation is distinct from old.generation + 1""",
    "epoch lowered": "new.epoch < old.epoch",
    "generation out of order": "new.generation not between old.generation and old.generation + 1",
    "taken without an epoch": "new.claimed_by is distinct from old.claimed_by and new.epoch <= old.epoch",
    "total changed": """old.total is not null and old.total is distinct from new.total
                        and old.generation = new.generation""",
}
# A row that a re-run has left out takes part in a later one, and skips the generations between.
_LEDGER = {
    "terminal state left": "old.state in {over} and old.state <> new.state and new.generation <= old.generation",
    "epoch lowered": "new.epoch < old.epoch",
    "generation out of order": "new.generation < old.generation",
    "state moved without the epoch": "new.state <> old.state and new.epoch <= old.epoch",
    "tries taken back": "new.attempts < old.attempts and new.generation = old.generation",
    "two tries at once": "new.attempts > old.attempts + 1",
}


# What a claim or a re-run may not do: begin beside another occurrence of a job whose `overlap` does not allow it. An
# `every` job's instances (`@…`) have nothing to do with one another.
_BESIDE = """
create function checker.occurrence_begun() returns trigger language plpgsql security definer as $$
begin
    if exists (select from matins.occurrence o join matins.job j on j.name = o.job
                where o.job = new.job and o.id <> new.id and o.state in ('claimed', 'running')
                  and o.variant not like '@%' and j.definition -> 'decisions' ->> 'overlap' <> 'allow') then
        insert into checker.fault (rule, occurrence_id, before, after)
        values ('two active at once', new.id, to_jsonb(old), to_jsonb(new));
    end if;
    return null;
end $$;
create trigger checker_begun after update on matins.occurrence for each row
    when (new.state in ('claimed', 'running') and old.state not in ('claimed', 'running') and new.variant not like '@%')
    execute function checker.occurrence_begun();
"""


async def record_history(session: Session) -> None:
    """Have every forbidden write on occurrences and ledger rows recorded from now on; a second call changes nothing."""
    if await session.fetchval("select to_regclass('checker.fault') is not null"):
        return
    async with session.transaction():
        await session.execute("create schema checker")
        await session.execute(
            """create table checker.fault (
                   id bigint generated always as identity primary key,
                   at timestamptz not null default clock_timestamp(),
                   rule text not null, occurrence_id bigint not null, account text,
                   before jsonb not null, after jsonb)"""
        )
        await _watch(session, "occurrence", "null", _OCCURRENCE, OCCURRENCE_MOVES, ("succeeded",))
        await session.execute(_BESIDE)
        await _watch(session, "ledger", "old.account", _LEDGER, ACCOUNT_MOVES, ("succeeded",))


async def _watch(
    session: Session,
    table: str,
    account: str,
    rules: Mapping[str, str],
    moves: Mapping[Any, frozenset[Any]],
    ends: tuple[str, ...],
) -> None:
    """Make the triggers of one table; their conditions are asked of each write, their function runs on a fault only."""
    over = _texts(*dict.fromkeys((*OVER, "dead", *ends)))
    faults = {rule: condition.format(over=over) for rule, condition in rules.items()}
    known = [_texts(state.value, to.value) for state, nexts in moves.items() for to in nexts]
    faults["no such move"] = f"new.state <> old.state and (old.state, new.state) not in ({', '.join(known)})"
    key = "old.id" if table == "occurrence" else "old.occurrence_id"
    cases = " ".join(
        f"""if {condition} then insert into checker.fault (rule, occurrence_id, account, before, after)
            values ('{rule}', {key}, {account}, to_jsonb(old), to_jsonb(new)); end if;"""
        for rule, condition in faults.items()
    )
    await session.execute(
        f"""create function checker.{table}_moved() returns trigger language plpgsql security definer as $$
            begin {cases} return null; end $$"""
    )
    await session.execute(
        f"""create trigger checker_moved after update on matins.{table} for each row
            when ({" or ".join(f"({condition})" for condition in faults.values())})
            execute function checker.{table}_moved()"""
    )
    await session.execute(
        f"""create function checker.{table}_deleted() returns trigger language plpgsql security definer as $$
            begin insert into checker.fault (rule, occurrence_id, account, before)
                  values ('row deleted', {key}, {account}, to_jsonb(old)); return null; end $$"""
    )
    await session.execute(
        f"""create trigger checker_deleted after delete on matins.{table} for each row
            execute function checker.{table}_deleted()"""
    )


def _texts(*values: str) -> str:
    return "(" + ", ".join(f"'{value}'" for value in values) + ")"
