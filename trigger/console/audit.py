"""The audit trail: who or what did what, when and why, the latest first; and how far it is sealed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NoReturn
from urllib.parse import urlencode

from schemas.audit import KINDS
from shared.terminal import Refused
from trigger.audit_trail import WAITING_COUNTED, Filter, list_audit, read_chain, who
from trigger.console.asking import Unanswerable, instant_of, one_of, words
from trigger.console.json_shown import changed
from trigger.console.place import GLANCE_SECONDS, STALE_SECONDS, Asked, Page, Values
from trigger.reach import read_identity

ENTRIES_A_PAGE: Final = 50
QUERIES: Final = ("job", "occurrence", "kind", "actor", "since", "until")
_BEHIND: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z),(\d{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: who acted, what differs between its two documents, and what else it says."""

    row: Mapping[str, Any]
    by: str
    changes: tuple[tuple[str, Any, Any], ...]
    more: Mapping[str, Any]


async def read(asked: Asked) -> Values:
    """Read a page of the trail. Raises Unanswerable."""
    query, wanted = asked.query, _filter(asked.query)
    async with (
        asked.place.database.session() as session,
        session.transaction(isolation="repeatable_read", readonly=True),
    ):
        rows = await list_audit(session, wanted, ENTRIES_A_PAGE + 1)
        chain = await read_chain(session)
    given = {name: query[name] for name in QUERIES if query.get(name)}
    page = rows[:ENTRIES_A_PAGE]
    return {
        "title": "Audit",
        "entries": [_entry(row) for row in page],
        "chain": chain,
        "counted": WAITING_COUNTED,
        "asked": {name: query.get(name, "") for name in QUERIES},
        "kinds": KINDS,
        "latest": f"/audit?{urlencode(given)}" if wanted.behind else "",
        "older": f"/audit?{urlencode(given | {'behind': _place(page[-1])})}" if len(rows) > len(page) else "",
        "narrowed": bool(given),
    }


def _filter(query: Mapping[str, str]) -> Filter:
    """Read what is asked for. Raises Unanswerable."""
    job, kind = words(query, "job") or None, one_of(query, "kind", KINDS)
    written, actor = words(query, "occurrence"), words(query, "actor") or None
    try:
        occurrence = read_identity(written) if written else None
    except Refused as error:
        raise Unanswerable(f"occurrence: {error}") from None
    if occurrence is not None and job not in {None, occurrence.job}:
        raise Unanswerable(f"job: {occurrence} is of {occurrence.job}")
    instants = (instant_of(query, "since"), instant_of(query, "until"))
    return Filter(job, occurrence, (kind,) if kind else (), actor, *instants, _behind(query.get("behind", "")))


def _behind(text: str) -> tuple[datetime, int] | None:
    """Read the place of an entry, as a link to what is older has it. Raises Unanswerable."""
    if not text:
        return None
    found = _BEHIND.fullmatch(text)
    try:
        return (datetime.fromisoformat(found[1]), int(found[2])) if found else _no_place(text)
    except ValueError:
        return _no_place(text)


def _no_place(text: str) -> NoReturn:
    raise Unanswerable(f"behind: {text[:60]!r} is no place in the trail; follow the links") from None


def _place(row: Mapping[str, Any]) -> str:
    return f"{row['at'].astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ},{row['id']}"


def _entry(row: dict[str, Any]) -> Entry:
    more = {name: value for name, value in row["detail"].items() if name not in {"before", "after"}}
    return Entry(row, who(row), tuple(changed(row["before"], row["after"])), more)


PAGE: Final = Page(
    "/audit", "audit.html", read, "audit", frozenset({*QUERIES, "behind"}), GLANCE_SECONDS, STALE_SECONDS
)
