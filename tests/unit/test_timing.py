"""A job's occasions: which instants, since when each covers the time, and by how much the jitter puts them off."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.calls import AccountCall
from shared.declaration import FaultyDeclaration
from shared.definition import definition_of, fingerprint
from shared.job import Cron, PerAccount, hours, minutes, seconds
from shared.timing import Occasion, Timing
from tests.support.ledger import job_with

MIDNIGHT = datetime(2026, 8, 25, tzinfo=UTC)
DAY = timedelta(days=1)
NIGHTLY = Cron("0 2 * * *")


async def nothing(call: AccountCall) -> None:
    """Do nothing."""


JOB = job_with(PerAccount(nothing))


def test_without_jitter_an_occurrence_is_due_when_it_is_scheduled() -> None:
    second = MIDNIGHT + hours(2)
    assert list(Timing("nightly", NIGHTLY).occasions(MIDNIGHT, MIDNIGHT + 2 * DAY)) == [
        Occasion(second, second, second - DAY),
        Occasion(second + DAY, second + DAY, second),
    ]


def test_jitter_is_the_same_on_every_machine_and_another_for_each_occurrence_and_job() -> None:
    put_off = [
        int((one.due_at - one.scheduled_at).total_seconds())
        for name in ("invoices", "charges")
        for one in Timing(name, NIGHTLY, minutes(5)).occasions(MIDNIGHT, MIDNIGHT + 4 * DAY)
    ]
    assert put_off == [207, 230, 58, 205, 293, 295, 1, 299]


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["* * * * *", "*/7 * * * *", "0 2 * * *", "0,1 2 * * *"]),
    st.integers(0, 86_400),
    st.integers(0, 10**6),
    st.integers(2, 30),
)
def test_due_times_keep_the_order_of_the_instants(text: str, jitter: int, start: int, length: int) -> None:
    after = MIDNIGHT + timedelta(seconds=start)
    timing = Timing("nightly", Cron(text), seconds(jitter))
    occasions = list(timing.occasions(after, after + timedelta(hours=length)))
    assert all(one.scheduled_at <= one.due_at <= one.scheduled_at + seconds(jitter) for one in occasions)
    assert all(earlier.due_at < later.scheduled_at for earlier, later in pairwise(occasions))
    assert all(one.due_at.microsecond == 0 for one in occasions)


def test_jitter_spreads_jobs_of_one_instant_over_the_whole_of_it() -> None:
    instant = MIDNIGHT + hours(2)
    late = [(Timing(f"job-{n}", NIGHTLY, minutes(5)).due_at(instant) - instant).total_seconds() for n in range(600)]
    assert min(late) < 5
    assert max(late) > 295
    assert len(set(late)) > 200


def test_a_definition_gives_the_same_timing_and_names_jitter_only_where_there_is_some() -> None:
    jittery = replace(JOB, jitter=minutes(5))
    assert Timing.from_definition(JOB.name, definition_of(jittery)) == Timing.of(jittery)
    assert definition_of(jittery)["jitter"] == 300
    assert "jitter" not in definition_of(JOB), "or each job would change with the release that brings jitter"
    assert fingerprint(definition_of(jittery)) != fingerprint(definition_of(JOB))


@pytest.mark.parametrize("jitter", [timedelta(seconds=-1), timedelta(days=2), 5])
def test_jitter_must_be_a_duration_of_at_most_a_day(jitter: timedelta) -> None:
    with pytest.raises(FaultyDeclaration, match=r"jitter: is .*at most 24h"):
        replace(JOB, jitter=jitter)
