"""The questions about occurrences."""

from typing import Any, Final

from schemas.message import MAXIMUM_ACCOUNT_BYTES
from schemas.states import AccountState, OccurrenceState
from trigger.attempts import occurrence_attempts
from trigger.console.api.fields import component, many
from trigger.console.api.parameters import choice, in_path, instant, text, whole
from trigger.console.api.route import Question, Read
from trigger.console.api.shapes_fleet import OCCURRENCE as WRITTEN
from trigger.console.place import GLANCE_SECONDS
from trigger.reach import read_identity
from trigger.show import list_accounts, list_occurrences, show_occurrence

MOST_LISTED: Final = 1000
OF_JOB: Final = text("job", "Of this job alone.", "invoice-run", longest=63)
OCCURRENCE: Final = in_path(
    "occurrence", "As invoice-run:2026-08-25T02:00Z; a variant follows the job.", WRITTEN, {"format": "occurrence"}
)
_ALL: Final = tuple(one.value for one in AccountState)


async def occurrences(question: Question) -> Any:
    """Give what `occurrences --json` does."""
    async with question.view() as session:
        return await list_occurrences(session, question["job"], question["state"], question["since"], question["limit"])


async def one_occurrence(question: Question) -> Any:
    """Give what `show --json` does, as it was read last: the accounts of one that runs are counted."""
    identity = read_identity(question["occurrence"])

    async def read() -> Any:
        async with question.view() as session:
            return await show_occurrence(session, identity)

    return await question.place.keeping.get(f"api {identity}", read, fresh_for=GLANCE_SECONDS)


async def accounts(question: Question) -> Any:
    """Give what `show --accounts STATE --json` has in `accounts`."""
    identity, states = read_identity(question["occurrence"]), question["state"] or _ALL
    async with question.view() as session:
        return await list_accounts(session, identity, states, question["after"], question["limit"])


async def attempts(question: Question) -> Any:
    """Give what `attempts OCCURRENCE --json` does."""
    async with question.view() as session:
        return await occurrence_attempts(session, read_identity(question["occurrence"]))


READS: Final = (
    Read(
        "/occurrences",
        "occurrences",
        "Occurrences, the latest first; those that are still to come only with `state=expected`.",
        many(component("ListedOccurrence")),
        occurrences,
        (
            OF_JOB,
            choice("state", "In this state.", [one.value for one in OccurrenceState], many=True),
            instant("since", "Due at or after this."),
            whole("limit", "At most.", 1, MOST_LISTED, 20),
        ),
    ),
    Read(
        "/occurrences/{occurrence}",
        "occurrence",
        "Everything about one occurrence: counts, progress, errors, generations, alerts, attempts and events.",
        component("Occurrence"),
        one_occurrence,
        (OCCURRENCE,),
        kept=True,
    ),
    Read(
        "/occurrences/{occurrence}/accounts",
        "accounts",
        "A page of an occurrence's accounts, in the order of their ids.",
        component("Accounts"),
        accounts,
        (
            OCCURRENCE,
            choice("state", "In this state; by default in any.", _ALL, many=True),
            text("after", "Go on behind this account.", "0123", longest=MAXIMUM_ACCOUNT_BYTES),
            whole("limit", "At most.", 1, MOST_LISTED, 50),
        ),
    ),
    Read(
        "/occurrences/{occurrence}/attempts",
        "occurrence_attempts",
        "Who attempted an occurrence, when, and who won.",
        component("OccurrenceAttempts"),
        attempts,
        (OCCURRENCE,),
    ),
)
