"""Rights in the database as values: what the manifest wants, how it is written in SQL, and what must be revoked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from schemas.privileges import FUNCTIONS, HANDLER, TABLES
from shared.role_names import GROUPS, RoleNames

PUBLIC = "public"
SCHEMA = "matins"
SHOWN = 6
SHOWN_COLUMNS = 5


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb that a role may do on one object of the schema; `column` is '' where all are meant."""

    grantee: str
    kind: str
    name: str
    verb: str
    column: str = ""


def wanted(names: RoleNames, logins: Iterable[str] = ()) -> frozenset[Right]:
    """Give every right of the manifest, under the names that the roles have on this cluster; `logins` are jobs' own."""
    rights: set[Right] = set()
    for login in logins:
        rights.add(Right(login, "schema", SCHEMA, "usage"))
        rights |= {Right(login, "function", signature, "execute") for signature in FUNCTIONS[HANDLER]}
    for group in GROUPS:
        grantee = names.of(group)
        rights.add(Right(grantee, "schema", SCHEMA, "usage"))
        rights |= {Right(grantee, "function", signature, "execute") for signature in FUNCTIONS[group]}
        rights |= _on_tables(grantee, TABLES[group])
    return frozenset(rights)


def _on_tables(grantee: str, tables: Mapping[str, Mapping[str, tuple[str, ...]]]) -> set[Right]:
    return {
        Right(grantee, "table", table, verb, column)
        for table, verbs in tables.items()
        for verb, columns in verbs.items()
        for column in columns or ("",)
    }


def excess(held: Iterable[Right], rights: frozenset[Right], grantees: Iterable[str]) -> list[Right]:
    """Give what `grantees` hold and should not, in order."""
    theirs = frozenset(grantees)
    return sorted(one for one in set(held) - rights if one.grantee in theirs)


def lack(held: Iterable[Right], rights: frozenset[Right]) -> list[Right]:
    """Give what should be held and is not, in order."""
    return sorted(rights - set(held))


def grants(rights: Iterable[Right]) -> list[str]:
    """Write the statements that grant some rights, one for each role, object and verb."""
    return [f"grant {what} to {role}" for what, role in _grouped(rights)]


def revokes(rights: Iterable[Right]) -> list[str]:
    """Write the statements that revoke some rights, and what was handed on of them.

    Of a table, a verb's columns go with it.
    """
    return [f"revoke {what} from {role} cascade" for what, role in _grouped(rights)]


def _grouped(rights: Iterable[Right], most_columns: int | None = None) -> list[tuple[str, str]]:
    found = []
    for (grantee, kind, name, verb), group in groupby(
        sorted(rights), lambda one: (one.grantee, one.kind, one.name, one.verb)
    ):
        columns = [one.column for one in group]
        more = f" and {len(columns[most_columns:])} more" if most_columns and columns[most_columns:] else ""
        listed = f" ({', '.join(map(quoted, columns[:most_columns]))}{more})" if all(columns) else ""
        found.append((f"{verb}{listed} on {_on(kind, name)}", PUBLIC if grantee == PUBLIC else quoted(grantee)))
    return found


def _on(kind: str, name: str) -> str:
    if kind in {"schema", "database"}:
        return f"{kind} {quoted(name)}"
    if kind == "function":
        function, _, arguments = name.partition("(")
        return f"function {SCHEMA}.{quoted(function)}({arguments}"
    # `on sequence` must be said, `on table` need not be.
    return f"{'sequence ' if kind == 'sequence' else ''}{SCHEMA}.{quoted(name)}"


def quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def everything_of(grantee: str) -> list[str]:
    """Write the statements that take from a role whatever it may do in the schema."""
    kinds = ("all tables in schema", "all sequences in schema", "all routines in schema", "schema")
    return [f"revoke all on {kind} {SCHEMA} from {quoted(grantee)} cascade" for kind in kinds]


def told(rights: Iterable[Right]) -> str:
    """Say rights in one line, columns together; of very many rights or columns, the first."""
    found = [what for what, _ in _grouped(rights, SHOWN_COLUMNS)]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(found[:SHOWN]).replace('"', "") + more
