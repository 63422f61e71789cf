"""Paging through the accounts of an occurrence, however many it has: each step reads a bounded number of rows.

Accounts that did not succeed are read from the index of those, those that are not over from the index of those, and all
others in key order. Where a state is rare among them, a page looks at some hundred thousand accounts at most, says so,
and offers to go on from there.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from schemas.message import MAXIMUM_ACCOUNT_BYTES
from shared.postgres import Row, Session
from shared.sql_files import statement
from trigger.console.asking import Unanswerable

UNSUCCESSFUL_ACCOUNTS = statement("trigger.console", "unsuccessful_accounts")
ACCOUNTS_BY_KEY = statement("trigger.console", "accounts_by_key")
OPEN_ACCOUNTS = statement("trigger.console", "open_accounts")
KEEP_TO_ORDER = statement("trigger.console", "keep_to_order")

ACCOUNTS_A_PAGE: Final = 50
FIRST_LOOK: Final = 500
LOOK: Final = 10_000
MOST_LOOKS: Final = 20
UNSUCCESSFUL: Final = ("failed", "dead", "cancelled")
OPEN: Final = ("pending", "running")
STATES: Final = (*UNSUCCESSFUL, *OPEN, "succeeded")
# Greater than every id that can be stored, in the order of the key.
BEYOND_ALL: Final = "\U0010ffff" * (MAXIMUM_ACCOUNT_BYTES // 4 + 1)
_HIGHEST_POSITION: Final = 2**63 - 1
_SURROGATES: Final = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a list, in an order of its own: accounts in some states, read by state, by key or by position."""

    name: str
    states: tuple[str, ...]
    by: Literal["state", "key", "position"]


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a list: behind or before an account, or a position, of one of its parts."""

    part: str
    key: str

    def __str__(self) -> str:
        """Give the written form, as `read_cursor` reads it."""
        return f"{self.part}:{self.key}"


@dataclass(frozen=True, slots=True)
class AccountPage:
    """A page of accounts. `before` and `after` lead on from it, or are '' where there is nothing.

    `looked` is how many accounts were looked at in vain before the page was given up unfilled, or 0.
    """

    rows: list[dict[str, Any]]
    before: str
    after: str
    looked: int = 0


def parts_of(state: str, *, searched: bool) -> tuple[Part, ...]:
    """Give the parts of a list: of one state, or with '' of all, those that did not succeed first."""
    if state in UNSUCCESSFUL:
        return (Part(state, (state,), "state"),)
    if state in OPEN:
        return (Part(state, (state,), "key" if searched else "position"),)
    if state:
        return (Part(state, (state,), "key"),)
    others = tuple(one for one in STATES if one not in UNSUCCESSFUL)
    return (*(Part(one, (one,), "state") for one in UNSUCCESSFUL), Part("others", others, "key"))


def read_cursor(name: str, text: str, parts: Sequence[Part]) -> Cursor | None:
    """Read a place in a list, None for none. Raises Unanswerable for what is none of this list."""
    if not text:
        return None
    named, _, key = text.partition(":")
    part = next((one for one in parts if one.name == named), None)
    if part is None or not key or (part.by == "position" and not re.fullmatch(r"\d{1,18}", key, re.ASCII)):
        valid = ", ".join(f"{one.name}:{'POSITION' if one.by == 'position' else 'ACCOUNT'}" for one in parts)
        raise Unanswerable(f"{name}: {text[:40]!r} is no place in this list; valid is {valid}")
    return Cursor(named, key)


def beyond(prefix: str) -> str:
    """Give the least text that is greater than all that begin with `prefix`, in the order of the key."""
    while prefix:
        following = ord(prefix[-1]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= ord(BEYOND_ALL[0]):
            return prefix[:-1] + chr(following)
        prefix = prefix[:-1]
    return BEYOND_ALL


@dataclass(slots=True)
class Reading:
    """Reads pages of one occurrence's accounts that begin with `prefix`, in a transaction of the session.

    `looked` counts what a page has looked at.
    """

    session: Session
    occurrence_id: int
    scheduled_at: datetime
    prefix: str = ""
    looked: int = field(default=0, init=False)

    async def forwards(self, parts: Sequence[Part], cursor: Cursor | None) -> AccountPage:
        """Give the page that begins behind `cursor`, or the first."""
        found, stopped = await self._gather(parts, cursor, back=False)
        rows = found[:ACCOUNTS_A_PAGE]
        more = _cursor(rows[-1]) if len(found) > ACCOUNTS_A_PAGE else stopped
        less = None if cursor is None else _cursor(rows[0]) if rows else stopped
        return AccountPage(rows, str(less or ""), str(more or ""), self._in_vain(stopped))

    async def backwards(self, parts: Sequence[Part], cursor: Cursor) -> AccountPage:
        """Give the page that ends before `cursor`; near the beginning, the first."""
        found, stopped = await self._gather(parts[::-1], cursor, back=True)
        if len(found) < ACCOUNTS_A_PAGE and stopped is None:
            return await self.forwards(parts, None)
        rows = found[:ACCOUNTS_A_PAGE][::-1]
        less = _cursor(rows[0]) if len(found) > ACCOUNTS_A_PAGE else stopped
        more = _cursor(rows[-1]) if rows else stopped
        return AccountPage(rows, str(less or ""), str(more or ""), self._in_vain(stopped))

    async def next_to(self, account: str) -> list[str]:
        """Give the ids just before an account and just behind it, in key order."""
        of = (self.occurrence_id, self.scheduled_at, list(STATES))
        before = await self.session.fetch(ACCOUNTS_BY_KEY, *of, "", "", account, True, 1, 1)  # noqa: FBT003 - a statement's parameters have no names
        behind = await self.session.fetch(ACCOUNTS_BY_KEY, *of, "", account, BEYOND_ALL, False, 1, 1)  # noqa: FBT003 - a statement's parameters have no names
        return [row["account"] for row in (*before, *behind) if row["account"] is not None]

    def _in_vain(self, stopped: Cursor | None) -> int:
        return 0 if stopped is None else self.looked

    async def _gather(
        self, parts: Sequence[Part], cursor: Cursor | None, *, back: bool
    ) -> tuple[list[dict[str, Any]], Cursor | None]:
        """Read one row more than a page from the parts in their order; and where a look for it was given up."""
        await self.session.execute(KEEP_TO_ORDER)
        self.looked = 0
        found: list[dict[str, Any]] = []
        begin = 0 if cursor is None else [one.name for one in parts].index(cursor.part)
        for part in parts[begin:]:
            key = cursor.key if cursor is not None and part.name == cursor.part else None
            rows, stopped = await self._read(part, key, ACCOUNTS_A_PAGE + 1 - len(found), back=back)
            found += [dict(row) | {"part": part.name, "by": part.by} for row in rows]
            if stopped is not None:
                return found, Cursor(part.name, stopped)
            if len(found) > ACCOUNTS_A_PAGE:
                break
        return found, None

    async def _read(self, part: Part, key: str | None, wanted: int, *, back: bool) -> tuple[list[Row], str | None]:
        """Read up to `wanted` rows of a part beyond a key; with the key up to which it was looked in vain, or None."""
        if part.by == "state":
            bounds = self._bounds(part, key, back=back)
            named = (self.occurrence_id, self.scheduled_at, part.states[0])
            return await self.session.fetch(UNSUCCESSFUL_ACCOUNTS, *named, *bounds, back, wanted), None
        found: list[Row] = []
        size = FIRST_LOOK
        for _ in range(MOST_LOOKS):
            query = OPEN_ACCOUNTS if part.by == "position" else ACCOUNTS_BY_KEY
            of = (self.occurrence_id, self.scheduled_at, list(part.states))
            bounds = self._bounds(part, key, back=back)
            rows = await self.session.fetch(query, *of, *bounds, back, size, wanted - len(found))
            found += [row for row in rows if row["account"] is not None]
            looked, key = rows[0]["looked"], str(rows[0]["stopped"])
            self.looked += looked
            if len(found) >= wanted or looked < size:
                return found, None
            size = LOOK
        return found, key

    def _bounds(self, part: Part, key: str | None, *, back: bool) -> tuple[object, ...]:
        """Give what a statement's rows lie behind and before; by key also from where they are, for the prefix."""
        if part.by == "position":
            place = None if key is None else int(key)
            return (-1, _HIGHEST_POSITION if place is None else place) if back else (place or -1, _HIGHEST_POSITION)
        high = beyond(self.prefix)
        if back:
            return (self.prefix, "", high if key is None else min(key, high))
        return (self.prefix, key or "", high)


def _cursor(row: dict[str, Any]) -> Cursor:
    return Cursor(row["part"], str(row["position"]) if row["by"] == "position" else row["account"])
