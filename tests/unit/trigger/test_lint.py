"""What `check` says of declarations that are valid and will hurt some night."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.calls import AccountCall, ChunkCall, Handled
from shared.exclusions import Calendar, Weekdays
from shared.interval import shortest_interval
from shared.job import Cron, Every, Except, Instants, Job, PerAccount, SetBased, hours, minutes, seconds
from shared.schedule import Fold, Gap
from shared.schedule_protocol import Schedule
from tests.support.ledger import job_with
from trigger.lint import Judged, LastRuns, judge_job, judge_last_runs, judge_leases

NOW = datetime(2026, 8, 25, 12, tzinfo=UTC)
NIGHTLY = Cron("0 2 * * *")


async def per_account(call: AccountCall) -> None:
    """Do nothing."""


async def set_based(call: ChunkCall) -> Handled:
    """Do nothing."""
    return Handled(frozenset(call.accounts))


JOB = job_with(PerAccount(per_account))


def judged(schedule: Schedule) -> list[Judged]:
    return list(judge_job(replace(JOB, schedule=schedule), NOW, prefetch=16))


def berlin(text: str, gap: Gap, fold: Fold = "first") -> Cron:
    return Cron(text, "Europe/Berlin", gap, fold)


@pytest.mark.parametrize(
    "schedule",
    [
        NIGHTLY,
        Cron("*/15 * * * *"),
        berlin("0 9 * * *", "skip"),
        berlin("*/15 * * * *", "skip", "both"),
        berlin("0 * * * *", "shift", "both"),
        Every(minutes=15),
        Instants(["2027-01-01T00:00Z"]),
        Except(NIGHTLY, [Weekdays(["sat"]), Calendar("berlin", ["2026-12-25", "2027-12-25"])]),
        Cron("0 0 LW * *"),
        Cron("0 0 */2 * MON"),
    ],
    ids=lambda schedule: schedule.description,
)
def test_what_is_well_is_left_alone(schedule: Schedule) -> None:
    assert judged(schedule) == []


@pytest.mark.parametrize(
    ("schedule", "level", "why", "instead"),
    [
        (Cron("0 0 13 * 5"), "warning", "runs on a day that matches either", "* in one of the two fields"),
        (berlin("30 2 * * *", "skip"), "warning",
         "02:30 on 2027-03-28 does not exist, since clocks in Europe/Berlin leave out 02:00 to 03:00; gap=skip",
         "a time outside 02:00 to 03:00, or another gap"),
        (berlin("30 2 * * *", "next_valid"), "note", "gap=next_valid runs at 03:00", ""),
        (berlin("30 2 * * *", "shift"), "note", "gap=shift runs later by 1:00:00", ""),
        (berlin("0 * * * *", "skip", "first"), "warning",
         "go back on 2026-10-25, fold=first leaves 2:00:00 between two runs instead of 1:00:00", "fold=both"),
        (berlin("0 */2 * * *", "skip", "both"), "warning",
         "go forward on 2027-03-28, gap=skip leaves 3:00:00 between two runs instead of 2:00:00", "gap=next_valid"),
        (Cron("45 * * * *", "Australia/Lord_Howe", "skip", "second"), "warning",
         "fold=second leaves 1:30:00", "fold=both"),
        (Instants(["2026-08-25T11:00Z"]), "warning",
         "has ended: its last instant was 2026-08-25T11:00:00Z", "new instants"),
        (Except(NIGHTLY, [Calendar("berlin", ["2026-12-25"])]), "warning",
         "calendar berlin ends on 2026-12-25, and leaves nothing out behind it", "the days of the next year"),
        (Cron("0 2 * * *", "Etc/GMT+2", "skip", "first"), "warning", "is UTC-2", "a place's name"),
    ],
)  # fmt: skip
def test_what_will_hurt_is_told_with_what_to_write_instead(
    schedule: Schedule, level: str, why: str, instead: str
) -> None:
    found = [one for one in judged(schedule) if why in one.why]
    assert [(one.level, one.where) for one in found] == [(level, f"{JOB.place}: schedule")]
    assert instead in found[0].instead
    assert bool(instead) == (f"; instead: {instead}" in str(found[0]))


def test_an_interval_shorter_than_the_last_runs_took_is_told() -> None:
    often = replace(JOB, schedule=Cron("*/30 * * * *"))
    (found,) = judge_last_runs(often, LastRuns(20, minutes(42)), NOW)
    assert str(found) == (
        f"{JOB.place}: schedule: is due every 30m, and the longest of its last 20 runs took 42m; "
        "instead: a longer interval, or less work in a run"
    )
    assert list(judge_last_runs(often, LastRuns(20, minutes(30)), NOW)) == []
    assert list(judge_last_runs(often, None, NOW)) == [], "it has never run"
    assert (
        list(judge_last_runs(replace(JOB, schedule=Instants(["2026-01-01T00:00Z"])), LastRuns(1, hours(9)), NOW)) == []
    )


@pytest.mark.parametrize(
    ("schedule", "interval"),
    [
        (Cron("0,10 2 * * *"), minutes(10)),
        (Cron("0 0 1 1 *"), timedelta(days=365)),
        (Every(seconds=20), seconds(20)),
        (Instants(["2026-09-01T00:00Z", "2026-12-01T00:00Z"]), timedelta(days=91)),
        (Instants(["2026-09-01T00:00Z"]), None),
    ],
)
def test_the_shortest_interval_is_that_of_the_next_instants(schedule: Schedule, interval: timedelta | None) -> None:
    assert shortest_interval(schedule, NOW) == interval


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (
            job_with(PerAccount(per_account, timeout=minutes(20), concurrency=16)),
            "for 40m: 16 wait beside the 16 that run",
        ),
        (job_with(PerAccount(per_account, timeout=minutes(11), concurrency=8)), "for 33m"),
        (job_with(PerAccount(per_account, timeout=minutes(9), concurrency=8)), ""),
        (job_with(PerAccount(per_account, timeout=seconds(60), chunk_size=1000, concurrency=2)), "for 54m"),
        (job_with(SetBased(set_based, timeout=minutes(10), concurrency=8)), "for 45m"),
        (job_with(SetBased(set_based)), ""),
        (job_with(PerAccount(per_account, settle="batched", timeout=minutes(10))), ""),
        (job_with(PerAccount(per_account, settle="batched", timeout=minutes(11))), "for 32m"),
    ],
)
def test_a_message_that_may_be_at_a_worker_for_longer_than_the_broker_waits_is_told(job: Job, told: str) -> None:
    found = [one for one in judge_job(job, NOW, prefetch=16) if "RabbitMQ" in one.why]
    assert [told in one.why for one in found] == ([True] if told else [])


def test_a_lease_shorter_than_three_signs_of_life_is_told() -> None:
    usual = {"outside_lease": seconds(30), "tick_interval": seconds(1), "sweep_interval": seconds(5)}
    assert list(judge_leases(seconds(15), **usual)) == []
    (short,) = judge_leases(seconds(14), **usual)
    assert (short.where, short.instead) == ("MATINS_CLAIM_LEASE", "at least 15s")
    assert "less than three times MATINS_SWEEP_INTERVAL (5s)" in short.why
    (slow,) = judge_leases(seconds(30), **(usual | {"sweep_interval": seconds(20)}))
    assert "three times MATINS_SWEEP_INTERVAL (20s)" in slow.why
    (outside,) = judge_leases(seconds(30), **(usual | {"outside_lease": seconds(5)}))
    assert (outside.level, outside.where) == ("warning", "MATINS_OUTSIDE_LEASE")
