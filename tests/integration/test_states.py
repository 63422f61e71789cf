"""Every step is let loose on a row in every state: what moves, and only what moves, is what the tables of moves say."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from schemas.report import Counts, Report
from schemas.states import ACCOUNT_MOVES, CLOSED, OCCURRENCE_MOVES, AccountState, OccurrenceState
from shared.calls import AccountCall
from shared.close import close
from shared.job import PerAccount
from shared.postgres import IntegrityViolation, Session
from tests.support.ledger import DUE, job_with, running_occurrence, session_on
from trigger.backfill import EXPECT_BACKFILLED
from trigger.check_in import END_ELSEWHERE, START_ELSEWHERE
from trigger.decide import CANCEL_PREVIOUS, CLAIM, COALESCE_OCCURRENCES, LET_WAIT, SETTLE_WITHOUT_CLAIM
from trigger.fan_out import FAIL_FAN_OUT, SEAL, TAKE_OVER
from trigger.operate import CANCEL_OCCURRENCE, REOPEN_ACCOUNTS, START_RERUN
from trigger.pauses import EXPECT_RETIRED, SKIP_EXPECTED
from trigger.plan import PLAN_OCCURRENCES
from trigger.register import SUPERSEDE_OCCURRENCES
from trigger.sweep import CANCEL_PENDING, SWEEP_EXPIRED
from worker.deadletter import BURY
from worker.handle import START_ALONE
from worker.occurrences import WorkOccurrence
from worker.outside import SETTLE_OUTSIDE, START_OUTSIDE
from worker.settle import SETTLE_SUCCEEDED, SETTLE_UNSUCCESSFUL

LONG_AGO = DUE - timedelta(days=1)
ZERO = timedelta(0)
REPORT = msgspec.to_builtins(Report(counts=Counts()))


async def nothing(call: AccountCall) -> None:
    """Do nothing."""


JOB = job_with(PerAccount(nothing))

ACCOUNT_COLUMNS = {
    AccountState.PENDING: "lease_until = null, finished_at = null, error_class = null, starts = 3",
    AccountState.RUNNING: f"lease_until = '{LONG_AGO}', finished_at = null, error_class = null",
    AccountState.SUCCEEDED: "lease_until = null, finished_at = clock_timestamp(), error_class = null",
    AccountState.FAILED: "lease_until = null, finished_at = clock_timestamp(), error_class = 'E'",
    AccountState.DEAD: "lease_until = null, finished_at = clock_timestamp(), error_class = 'E'",
    AccountState.CANCELLED: "lease_until = null, finished_at = clock_timestamp(), error_class = null",
}


def account_steps(occurrence: WorkOccurrence) -> list[tuple[str, tuple[Any, ...]]]:
    key = (occurrence.id, DUE)
    unsuccessful = ([1], [ZERO], ["E"], ["text"], DUE, "worker", DUE, "")
    return [
        (SETTLE_SUCCEEDED, (*key, ["a"], [], DUE, "worker", DUE)),
        (SETTLE_UNSUCCESSFUL, (*key, ["a"], ["failed"], *unsuccessful)),
        (SETTLE_UNSUCCESSFUL, (*key, ["a"], ["pending"], *unsuccessful)),
        (START_ALONE, (*key, "a", 1, None, 9)),
        (START_OUTSIDE, (*key, "a", 1, None, 9, timedelta(seconds=9), "worker", DUE)),
        (SETTLE_OUTSIDE, (*key, "a", 5, "succeeded", 1, ZERO, None, None, False, None, "")),
        (SETTLE_OUTSIDE, (*key, "a", 5, "failed", 1, ZERO, "E", "text", False, None, "")),
        (SETTLE_OUTSIDE, (*key, "a", 5, "pending", 1, ZERO, "E", "text", False, None, "")),
        (BURY, (*key, "a", 1, 3, "reason")),
        (CANCEL_PENDING, (*key, 10, None)),
        (SWEEP_EXPIRED, (*key, 10, 2**62, None)),
        (REOPEN_ACCOUNTS, (*key, 2, None, None)),
    ]


@pytest.mark.parametrize("state", list(AccountState))
async def test_accounts_move_as_the_table_says(database_url: str, state: AccountState) -> None:
    reached: set[AccountState] = set()
    async with session_on(database_url) as session:
        occurrence = await running_occurrence(session, JOB, ["a"])
        for query, arguments in account_steps(occurrence):
            ending = "'cancel'" if query is CANCEL_PENDING else "null"
            await session.execute(f"update matins.occurrence set ending = {ending}")
            await session.execute(
                f"update matins.ledger set state = '{state}', epoch = 5, generation = 1, {ACCOUNT_COLUMNS[state]}"
            )
            await session.fetch(query, *arguments)
            row: Any = await session.fetchrow("select state, epoch from matins.ledger")
            if row["state"] != state:
                reached.add(AccountState(row["state"]))
                assert row["epoch"] == 6, "each move grows the fence"
    assert reached == ACCOUNT_MOVES[state]


@pytest.mark.parametrize("state", list(AccountState))
async def test_no_account_can_be_written_in_a_state_without_its_columns(database_url: str, state: AccountState) -> None:
    async with session_on(database_url) as session:
        await running_occurrence(session, JOB, ["a"])
        await session.execute(f"update matins.ledger set state = '{state}', {ACCOUNT_COLUMNS[state]}")
        for other in AccountState:
            fits = (
                ACCOUNT_COLUMNS[other].partition(", error_class")[0] == ACCOUNT_COLUMNS[state].partition(", error_")[0]
            )
            if not fits:
                with pytest.raises(IntegrityViolation):
                    await session.execute(f"update matins.ledger set state = '{other}'")


CLAIMED = "claimed_by = 'x', claimed_at = clock_timestamp(), opened_at = clock_timestamp()"
COUNTS = "total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0, closed_at = clock_timestamp()"
OCCURRENCE_COLUMNS = {
    OccurrenceState.EXPECTED: "",
    OccurrenceState.CLAIMED: f", {CLAIMED}, lease_until = '{LONG_AGO}'",
    OccurrenceState.RUNNING: f", {CLAIMED}, sealed_at = clock_timestamp()",
    **dict.fromkeys(CLOSED, f", {CLAIMED}, sealed_at = clock_timestamp(), reason = 'r', report = $2, {COUNTS}"),
    OccurrenceState.SKIPPED: ", reason = 'superseded'",
    OccurrenceState.COALESCED: ", coalesced_into = id",
    OccurrenceState.MISSED: ", reason = 'r'",
}
Step = Callable[[Session, int], Awaitable[object]]


def run(query: str, *arguments: Any) -> Step:
    async def step(session: Session, occurrence_id: int) -> object:
        return await session.fetch(query, *(occurrence_id if one is ID else one for one in arguments))

    return step


def ended_as(account: str | None, ending: str | None = None, *, unsealed: bool = False) -> Step:
    """Close with one account in a state, or none, after an ending, or none."""

    async def step(session: Session, occurrence_id: int) -> object:
        if ending:
            await session.execute("update matins.occurrence set ending = $1", ending)
        if unsealed:
            await session.execute("update matins.occurrence set sealed_at = null where state = 'claimed'")
        await session.execute("delete from matins.ledger")
        if account:
            await session.execute(
                f"""insert into matins.ledger
                        (occurrence_id, scheduled_at, account, position, state, finished_at, error_class)
                    values ($1, $2, 'a', 1, '{account}', clock_timestamp(), nullif('E', $3))""",
                occurrence_id,
                DUE,
                "E" if account == "succeeded" else "",
            )
            await session.execute(
                f"""insert into matins.ledger (occurrence_id, scheduled_at, account, position, state, finished_at)
                    select $1, $2, 'b', 2, 'succeeded', clock_timestamp() where '{account}' = 'cancelled'""",
                occurrence_id,
                DUE,
            )
        return await close(session, occurrence_id, by="x")

    return step


ID = object()
OCCURRENCE_STEPS: list[Step] = [
    run(
        CLAIM, JOB.name, DUE, "", "x", "", 1, timedelta(seconds=9), timedelta(hours=1), "", None, None, None, None, None
    ),
    run(TAKE_OVER, [JOB.name], "x", timedelta(seconds=9), 9, None),
    run(SEAL, ID, 5, None, "x", None),
    run(FAIL_FAN_OUT, ID, 5, "text", 9, timedelta(seconds=1), "x", None),
    run(COALESCE_OCCURRENCES, [1], [1], "x"),
    run(SETTLE_WITHOUT_CLAIM, [1], "skipped", "overlap", "x", None),
    run(SETTLE_WITHOUT_CLAIM, [1], "missed", "late", "x", None),
    run(SUPERSEDE_OCCURRENCES, JOB.name, 1, [DUE], "x"),
    run(PLAN_OCCURRENCES, JOB.name, 1, [DUE], [LONG_AGO], [DUE], [False], "t", LONG_AGO, "x"),
    run(CANCEL_OCCURRENCE, ID, "x", "reason", "x"),
    run(SKIP_EXPECTED, JOB.name, "retired", None, "x", "x", "reason"),
    run(EXPECT_RETIRED, JOB.name, 1, LONG_AGO, "x", "x"),
    run(EXPECT_BACKFILLED, [1], 1, "x", "x", "reason"),
    run(CANCEL_PREVIOUS, [1], "reason", "x", None, "the next", None),
    run(LET_WAIT, [1], 1, "x", "another"),
    run(START_ELSEWHERE, ID, 5, "a", timedelta(hours=1), "x", "x", "reason", None, None),
    run(END_ELSEWHERE, ID, 5, "succeeded", None, "a", REPORT, None),
    run(END_ELSEWHERE, ID, 5, "failed", "reason", "a", REPORT, None),
    run(START_RERUN, ID, 1, timedelta(hours=1), REPORT, None),
    ended_as(None),
    ended_as("succeeded"),
    ended_as("failed"),
    ended_as("cancelled"),
    ended_as("cancelled", "cancel"),
    ended_as("cancelled", "deadline"),
    ended_as("cancelled", "fan_out"),
]


@pytest.mark.parametrize("state", list(OccurrenceState))
async def test_occurrences_move_as_the_table_says(database_url: str, state: OccurrenceState) -> None:
    reached: set[OccurrenceState] = set()
    async with session_on(database_url) as session:
        occurrence = await running_occurrence(session, JOB, [])
        assert occurrence.id == 1
        report = [REPORT] if state in CLOSED else []
        for sealed in (True, False):
            for step in OCCURRENCE_STEPS:
                await session.execute("delete from matins.occurrence")
                await session.execute(
                    """insert into matins.occurrence (id, job, scheduled_at, revision, window_since, window_until,
                           tzdata_version, epoch) overriding system value values (1, $1, $2, 1, $3, $2, 't', 5)""",
                    JOB.name,
                    DUE,
                    LONG_AGO,
                )
                columns = OCCURRENCE_COLUMNS[state].replace("$2", "$1")
                columns = columns if sealed else columns.replace("sealed_at = clock_timestamp()", "sealed_at = null")
                if state == OccurrenceState.RUNNING and not sealed:
                    continue
                await session.execute(f"update matins.occurrence set state = '{state}'{columns}", *report)
                await step(session, 1)
                found = OccurrenceState(await session.fetchval("select state from matins.occurrence"))
                if found != state:
                    reached.add(found)
    assert reached == OCCURRENCE_MOVES[state]
