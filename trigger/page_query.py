"""The SQL around an author's query of accounts: named parameters, order, position and limit. Pure."""

import re
from dataclasses import dataclass
from datetime import datetime

from shared.calls import Window
from shared.errors import MatinsError

# What looks like a parameter inside one of these is none.
_TOKEN = re.compile(
    r"""
    (?P<skipped>
        [eE]'(?:[^'\\]|\\.|'')*'               # string with escapes
      | '(?:[^']|'')*'                          # string
      | "(?:[^"]|"")*"                          # quoted name
      | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$   # dollar-quoted string
      | --[^\n]*                                # comment
      | ::                                      # cast
      | :=
    )
  | (?P<comment>/\*)
  | :(?P<name>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_KNOWN = ("since", "until")


class FaultySource(MatinsError):
    """The accounts' source cannot be used, or gives what it must not."""


@dataclass(frozen=True, slots=True)
class PageQuery:
    """The composed statements.

    `parameters` are the window's ends that the query uses, in the order of their numbers; `key` are the columns of a
    token. `first` takes the window and a limit, `following` the key behind them too, the others the window alone.
    """

    parameters: tuple[str, ...]
    key: tuple[str, ...]
    first: str
    following: str
    nulls: str
    is_deterministic: str

    def window(self, window: Window) -> list[datetime]:
        """Give the arguments for `parameters`."""
        ends = {"since": window.since, "until": window.until}
        return [ends[name] for name in self.parameters]


def substituted(query: str) -> tuple[str, tuple[str, ...]]:
    """Number the named parameters that are used, and give the text with their names in the numbers' order.

    Strings, quoted names, comments and casts are left alone. Raises FaultySource for another name than `:since` and
    `:until`.
    """
    parts: list[str] = []
    parameters: list[str] = []
    place = 0
    while (match := _TOKEN.search(query, place)) is not None:
        parts.append(query[place : match.start()])
        place = match.end()
        if match["comment"]:
            place = _end_of_comment(query, place)
            parts.append(" ")
        elif (name := match["name"]) is None:
            parts.append(match[0])
        elif name in _KNOWN:
            if name not in parameters:
                parameters.append(name)
            parts.append(f"${parameters.index(name) + 1}::timestamptz")
        else:
            raise FaultySource(f"the query of accounts uses :{name}; it may use :since and :until")
    return "".join([*parts, query[place:]]), tuple(parameters)


def compose(text: str, parameters: tuple[str, ...], cursor_type: str | None) -> PageQuery:
    """Wrap a query whose parameters are numbered; `cursor_type` is the SQL type of its column `cursor`, if it has one.

    Every value of a key travels as text and is cast back to its own type, so that the database alone compares.
    """
    limit = len(parameters) + 1
    source = f"from (\n{text}\n) as page"
    if cursor_type is None:
        key: tuple[str, ...] = ("account",)
        behind = f"page.account > ${limit + 1}::text"
    else:
        key = ("cursor", "account")
        behind = f"(page.cursor, page.account) > (${limit + 1}::text::{cursor_type}, ${limit + 2}::text)"
    columns = ", ".join(f"page.{name}::text as {name}" for name in key)
    order = ", ".join(f"page.{name}" for name in key)
    named = "page.account is not null"
    cursor_is_null = "false" if cursor_type is None else "page.cursor is null"
    return PageQuery(
        parameters,
        key,
        first=f"select {columns} {source}\n where {named} order by {order} limit ${limit}",
        following=f"select {columns} {source}\n where {named} and {behind} order by {order} limit ${limit}",
        nulls=(
            "select bool_or(page.account is null) as nameless,"
            f" (array_agg(page.account::text) filter (where {cursor_is_null} and {named}))[1] as without_cursor\n"
            f"{source}\n where page.account is null or {cursor_is_null}"
        ),
        is_deterministic=(
            "select c.collisdeterministic from pg_catalog.pg_collation c"  # noqa: S608 - the author's own query
            f" where c.oid = (select pg_collation_for(page.account)::regcollation {source}\n limit 1)"
        ),
    )


def _end_of_comment(query: str, place: int) -> int:
    """Find the end of a comment that may hold others; an open one reaches to the end, where the server complains."""
    depth = 1
    while depth and (edge := _COMMENT_EDGE.search(query, place)):
        depth += 1 if edge[0] == "/*" else -1
        place = edge.end()
    return place if depth == 0 else len(query)
