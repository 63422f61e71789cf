"""What a role must not be able to do, tried: a statement for each verb on each table and column that is not its own."""

from collections.abc import Iterator, Mapping
from typing import Any

from shared.postgres import InsufficientPrivilege, Session
from trigger.database_rights import quoted


async def refused(session: Session, statement: str) -> str:
    """Run a statement, undone; give why it was refused, or ''."""
    transaction = session.transaction()
    await transaction.start()
    try:
        await session.execute(statement)
    except InsufficientPrivilege as error:
        return str(error)
    finally:
        await transaction.rollback()
    return ""


async def relations(session: Session) -> list[Any]:
    """Read every table and sequence of the schema, with its columns."""
    return await session.fetch(
        """select c.relname::text as relation, c.relkind = 'S' as is_sequence, array_agg(a.attname::text) as columns
             from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
            where c.relnamespace = 'matins'::regnamespace and c.relkind in ('r', 'p', 'S') group by 1, 2 order by 1"""
    )


def forbidden(
    tables: Mapping[str, Mapping[str, tuple[str, ...]]], table: str, columns: list[str], *, is_sequence: bool
) -> Iterator[str]:
    """Give a statement for every verb on a table, and every column of it, that `tables` does not give."""
    name, verbs = f"matins.{table}", tables.get(table, {})
    if "select" not in verbs:
        yield f"select 1 from {name}"
    if is_sequence:
        yield f"select nextval('{name}')"
        yield f"select setval('{name}', 1)"
        return
    for column in columns:
        if "insert" not in verbs or (verbs["insert"] and column not in verbs["insert"]):
            yield f"insert into {name} ({quoted(column)}) overriding system value values (null)"
        if "update" not in verbs or (verbs["update"] and column not in verbs["update"]):
            yield f"update {name} set {quoted(column)} = default"
    if "delete" not in verbs:
        yield f"delete from {name}"
    if "update" not in verbs:
        yield f"select 1 from {name} for update"
    yield f"truncate {name}"
    yield f"lock table {name} in access exclusive mode" if "delete" not in verbs else f"drop table {name}"
    yield f"drop table {name} cascade"
    yield f"alter table {name} add column more integer"
    yield f"alter table {name} disable trigger all"
    yield f"create index on {name} ({quoted(columns[0])})"
    yield f"create rule nothing as on update to {name} do instead nothing"
    yield f"create trigger t before insert on {name} execute function suppress_redundant_updates_trigger()"
