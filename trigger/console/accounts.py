"""The accounts of one occurrence: those that did not succeed first, by state, and found by how their id begins."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from schemas.occurrence import Identity
from schemas.states import ACTIVE
from shared.postgres import Row, Session
from shared.sql_files import statement
from trigger.console.account_pages import STATES, AccountPage, Reading, parts_of, read_cursor
from trigger.console.asking import Unanswerable, account_id, one_of
from trigger.console.counting import Counted, counted
from trigger.console.occurrence import OCCURRENCE_JOB, coordination_of, has_accounts
from trigger.console.place import Asked, Page, Values
from trigger.reach import read_identity, require_occurrence
from trigger.show import facts_of

ACCOUNT = statement("trigger.console", "account")

EMPTY: Final = AccountPage([], "", "")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for: a state or '', an id or its beginning or '', and the place in the list."""

    state: str
    wanted: str
    after: str
    before: str


async def read(asked: Asked) -> Values:
    """Read the page. Raises Refused for an occurrence that there is not, and Unanswerable."""
    identity = read_identity(asked.path["occurrence"])
    question = _question(asked.query)
    async with (
        asked.place.database.session() as session,
        session.transaction(isolation="repeatable_read", readonly=True),
    ):
        row = await require_occurrence(session, identity)
        job: Any = await session.fetchrow(OCCURRENCE_JOB, identity.job, row["revision"])
        shown, coordination = facts_of(identity, row), coordination_of(job)
        listed = shown["pruned_before"] is None and has_accounts(coordination) and row["opened_at"] is not None
        page = await _page(session, row, question) if listed else EMPTY
        exact = await _exact(session, row, question) if listed else None
    counting = listed and row["state"] in ACTIVE
    return {
        "title": f"Accounts of {identity}",
        "shown": shown,
        "coordination": coordination,
        "listed": listed,
        "page": page,
        "links": _links(identity, question, page),
        "exact": exact,
        "state": question.state,
        "wanted": question.wanted,
        "is_first": not (question.after or question.before),
        "states": STATES,
        "counted": counted(asked.place, identity, row) if counting else Counted(shown["counts"]),
    }


def _question(query: Mapping[str, str]) -> Question:
    state, wanted = one_of(query, "state", STATES), account_id(query, "q")
    places = {name: query.get(name, "") for name in ("after", "before")}
    if any("\0" in text for text in places.values()):
        raise Unanswerable("after and before: no account's id holds NUL")
    if all(places.values()):
        raise Unanswerable("after and before: give one of the two")
    return Question(state, wanted, places["after"], places["before"])


async def _page(session: Session, row: Row, question: Question) -> AccountPage:
    parts = parts_of(question.state, searched=bool(question.wanted))
    reading = Reading(session, row["id"], row["scheduled_at"], question.wanted)
    before = read_cursor("before", question.before, parts)
    if before is not None:
        return await reading.backwards(parts, before)
    return await reading.forwards(parts, read_cursor("after", question.after, parts))


def _links(identity: Identity, question: Question, page: AccountPage) -> dict[str, str]:
    """Give where the same list begins, and goes on before and after this page."""

    def link(name: str, place: str) -> str:
        told = {"q": question.wanted, "state": question.state, name: place}
        query = urlencode({name: value for name, value in told.items() if value})
        return f"/occurrences/{identity}/accounts" + (f"?{query}" if query else "")

    return {"first": link("after", ""), "before": link("before", page.before), "after": link("after", page.after)}


async def _exact(session: Session, row: Row, question: Question) -> dict[str, Any] | None:
    """Find the account that is named exactly so."""
    if not question.wanted:
        return None
    found = await session.fetchrow(ACCOUNT, row["id"], row["scheduled_at"], question.wanted)
    return None if found is None else {"account": found["account"], "state": found["state"]}


PAGE: Final = Page(
    "/occurrences/{occurrence}/accounts",
    "accounts.html",
    read,
    "tonight",
    frozenset({"q", "state", "after", "before"}),
)
