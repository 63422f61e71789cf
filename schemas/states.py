"""The states of an occurrence and of a ledger row, and the legal moves between them.

The tables' CHECK constraints and every statement's ``where state in (…)`` say the same; a test drives each pair of
states through the statements and compares the outcome with these tables.
"""

from enum import StrEnum


class OccurrenceState(StrEnum):
    """Where one occurrence stands."""

    EXPECTED = "expected"
    CLAIMED = "claimed"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    COALESCED = "coalesced"
    MISSED = "missed"


class AccountState(StrEnum):
    """Where one account of an occurrence stands."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"


ACTIVE = frozenset({OccurrenceState.CLAIMED, OccurrenceState.RUNNING})
RERUNNABLE = frozenset({OccurrenceState.PARTIAL, OccurrenceState.FAILED, OccurrenceState.CANCELLED})
CLOSED = RERUNNABLE | {OccurrenceState.SUCCEEDED}

OCCURRENCE_MOVES: dict[OccurrenceState, frozenset[OccurrenceState]] = {
    OccurrenceState.EXPECTED: frozenset(
        {OccurrenceState.CLAIMED, OccurrenceState.SKIPPED, OccurrenceState.COALESCED, OccurrenceState.MISSED}
    ),
    OccurrenceState.CLAIMED: frozenset(
        # What runs elsewhere is claimed from its start to its end, since nothing is fanned out.
        {OccurrenceState.RUNNING, *CLOSED}
    ),
    OccurrenceState.RUNNING: CLOSED,
    OccurrenceState.SUCCEEDED: frozenset(),
    OccurrenceState.PARTIAL: ACTIVE,
    OccurrenceState.FAILED: ACTIVE,
    OccurrenceState.CANCELLED: ACTIVE,
    # A rolled-back deploy takes back what a newer definition had superseded, `unretire` what is still to come, and a
    # backfill what was not run.
    OccurrenceState.SKIPPED: frozenset({OccurrenceState.EXPECTED}),
    OccurrenceState.COALESCED: frozenset({OccurrenceState.EXPECTED}),
    OccurrenceState.MISSED: frozenset({OccurrenceState.EXPECTED}),
}

ACCOUNT_MOVES: dict[AccountState, frozenset[AccountState]] = {
    # A transaction that runs and settles in one commit goes from pending straight to its end.
    AccountState.PENDING: frozenset(
        {AccountState.RUNNING, AccountState.SUCCEEDED, AccountState.FAILED, AccountState.DEAD, AccountState.CANCELLED}
    ),
    AccountState.RUNNING: frozenset({AccountState.PENDING, AccountState.SUCCEEDED, AccountState.FAILED}),
    AccountState.SUCCEEDED: frozenset(),
    AccountState.FAILED: frozenset({AccountState.PENDING}),
    AccountState.DEAD: frozenset({AccountState.PENDING}),
    AccountState.CANCELLED: frozenset({AccountState.PENDING}),
}
