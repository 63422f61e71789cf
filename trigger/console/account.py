"""One account of one occurrence: its row in the ledger, what went wrong in full, and how it fared at other times."""

from collections.abc import Mapping
from shlex import quote
from typing import Any, Final

from schemas.occurrence import Identity
from schemas.states import RERUNNABLE
from shared.calls import idempotency_key
from shared.masking import plain
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.terminal import Refused
from trigger.console.account_pages import UNSUCCESSFUL, Reading
from trigger.console.accounts import ACCOUNT
from trigger.console.asking import Unanswerable, account_id
from trigger.console.occurrence import (
    MOST_STEPS,
    OCCURRENCE_EVENTS,
    OCCURRENCE_JOB,
    coordination_of,
    event_of,
    has_accounts,
)
from trigger.console.occurrence_words import PROGRAM, Words
from trigger.console.place import Asked, Page, Values
from trigger.console.traces import trace_of
from trigger.reach import read_identity, require_occurrence
from trigger.show import facts_of

ACCOUNT_ELSEWHERE = statement("trigger.console", "account_elsewhere")

AROUND: Final = 10
SHOWN_ID: Final = 80
# What an occurrence meets meets its accounts.
KINDS: Final = ("ending", "cancel", "closed", "rerun", "account_forgotten")
NEVER_AGAIN: Final = frozenset({"invalid_account", "forgotten_account"})
_SAID: Final = {
    "pending": "It waits to be executed.",
    "running": "A worker is executing it: its lease is renewed as long as that goes on.",
    "succeeded": "It succeeded.",
    "failed": "It failed: its tries are used up, or its handler gave it up.",
    "dead": "It is dead: it ended the workers that executed it, or no worker could read its message.",
    "cancelled": "It was left out: the occurrence was ended before it began.",
}


async def read(asked: Asked) -> Values:
    """Read the page. Raises Refused for an occurrence or an account that there is not, and Unanswerable."""
    identity, name = read_identity(asked.path["occurrence"]), account_id(asked.query, "id")
    if not name:
        raise Unanswerable("id: an account's id is needed, as in ?id=a1")
    async with (
        asked.place.database.session() as session,
        session.transaction(isolation="repeatable_read", readonly=True),
    ):
        row = await require_occurrence(session, identity)
        job: Any = await session.fetchrow(OCCURRENCE_JOB, identity.job, row["revision"])
        shown, coordination = facts_of(identity, row), coordination_of(job)
        listed = has_accounts(coordination) and shown["opened_at"] is not None and shown["pruned_before"] is None
        found = await session.fetchrow(ACCOUNT, row["id"], row["scheduled_at"], name) if listed else None
        if found is None and listed:
            raise Refused(await _unknown(session, row, identity, name))
        events = await session.fetch(OCCURRENCE_EVENTS, row["id"], list(KINDS), MOST_STEPS)
        of = (identity.job, identity.scheduled_at, identity.variant)
        around = await session.fetch(ACCOUNT_ELSEWHERE, *of, name, AROUND)
    account = None if found is None else dict(found)
    return {
        "title": f"{plain(name, SHOWN_ID)} in {identity}",
        "name": name,
        "shown": shown,
        "coordination": coordination,
        "now": row["now"],
        "account": account,
        "key": None if found is None else idempotency_key(identity, name, salt=found["key_salt"]),
        "words": None if account is None else _words(shown, account),
        "max_tries": job["definition"].get("max_tries"),
        "trace": None if found is None else trace_of(found["trace_context"], asked.place.settings.trace_url),
        "events": [event_of(one, {}) for one in reversed(events)],
        "most_around": AROUND,
        "around": [{**dict(one), "occurrence": str(_identity(identity.job, one))} for one in around],
    }


async def _unknown(session: Session, row: Row, identity: Identity, name: str) -> str:
    """Say that the occurrence has no such account, and which ids are next to it."""
    near = await Reading(session, row["id"], row["scheduled_at"]).next_to(name)
    told = f"there is no account '{plain(name, SHOWN_ID)}' in {identity}"
    return told + (f"; nearest: {' and '.join(plain(one, SHOWN_ID) for one in near)}" if near else "")


def _words(shown: Mapping[str, Any], account: Mapping[str, Any]) -> Words:
    """Say what an account's state means, and what can be done about it."""
    told = _SAID[account["state"]]
    if account["state"] == "pending" and account["attempts"]:
        told = "It has failed before, and waits for its next try."
    if account["state"] not in UNSUCCESSFUL or shown["state"] not in RERUNNABLE or shown["variant"].startswith("@"):
        return Words(told)
    if account["error_class"] in NEVER_AGAIN:
        return Words(told, "It cannot be run again: its id can be no account's, or was made to forget.")
    # What cannot be typed as it is shown would be another account's.
    named = f"--account {quote(account['account'])}" if account["account"].isprintable() else "--failed"
    line = f'{PROGRAM} rerun {shown["occurrence"]} {named} --reason "…"'
    return Words(told, "Mend the cause, then run it again.", (line,))


def _identity(job: str, row: Row) -> Identity:
    return Identity(job, row["scheduled_at"], row["variant"])


PAGE: Final = Page("/occurrences/{occurrence}/account", "account.html", read, "tonight", frozenset({"id"}))
