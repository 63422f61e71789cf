"""What stats tells of a job's runs, and the markers of what was deployed meanwhile."""

import asyncio
from datetime import timedelta
from typing import Any

import orjson
import pytest

from shared.deploys import record_deploy
from shared.fleet import Instance
from shared.postgres import Session
from shared.terminal import Refused
from tests.integration.operate.night import nightly
from tests.support.growth import DAY, known_job, run_nights
from tests.support.ledger import DUE, database_on
from trigger.commands_stats import print_stats
from trigger.deploy_marker import mark_deploy
from trigger.stats import read_stats

HOUR = 3600.0
JOB = nightly()
AFTER = DUE + timedelta(hours=1)


def service(name: str, kind: str = "worker") -> Instance:
    """Give a process that starts."""
    return Instance(name, kind, "host", "0.1.0", "", "")


async def deploys(session: Session) -> list[tuple[str, str]]:
    """Give what was marked, in order."""
    rows = await session.fetch("select system, version from matins.deploy order by id")
    return [(row["system"], row["version"]) for row in rows]


async def test_growing_nights_are_told_with_the_night_on_which_they_meet_the_next(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_nights(session, JOB, lambda night: 12 * HOUR + 760 * night)
    await session.execute(
        """insert into matins.attempt (job, scheduled_at, instance, won)
           select job, scheduled_at, 'trigger-' || one, one = 1 from matins.occurrence, generate_series(1, 3) as one"""
    )
    await session.execute("update matins.job_revision set effective_from = $1", DUE - 3 * DAY)
    await mark_deploy(session, "tax-service", "9.1", DUE - 5 * DAY, "ann", "new rates")
    stats = await read_stats(session, JOB.name, 20, now=AFTER)

    told = orjson.loads(orjson.dumps(stats.as_json()))
    # 12 h and 760 s more each night are 24 h eight nights after the fiftieth, which was at DUE.
    assert told["duration"]["meets_at"] == "2026-09-02T02:00Z"
    assert told["duration"]["interval_seconds"] == 24 * HOUR
    assert told["duration"]["trend"]["seconds_per_day"] == pytest.approx(760)
    assert "at this growth the run meets the next one on 2 September 2026" in told["duration"]["told"]
    assert (len(told["runs"]), told["attempts"], told["wins"]) == (20, 60, 20)
    last = told["runs"][-1]
    assert last["seconds"] == pytest.approx(12 * HOUR + 760 * 49)
    assert last["fitted_seconds"] == pytest.approx(last["seconds"])
    assert (last["lag_seconds"], last["attempts"], last["wins"]) == (0.5, 3, 1)
    changes = [(one["system"], one["version"], one["actor"], one["reason"]) for one in told["changes"]]
    assert changes == [("tax-service", "9.1", "ann", "new rates"), ("definition", "revision 1", None, None)]

    print_stats(stats, 100)
    printed = capsys.readouterr().out
    assert "on 2 September 2026" in printed
    assert "60 at 20 runs, 20 won: 3.0 attempts and 1.0 wins each" in printed
    lines = printed.splitlines()
    marker = next(number for number, line in enumerate(lines) if "tax-service 9.1, ann: new rates" in line)
    assert lines[marker - 1].startswith("2026-08-19 02:00Z")
    assert lines[marker + 1].startswith("2026-08-20 02:00Z"), "the marker stands where it happened"
    assert max(map(len, lines[5:])) <= 100


async def test_only_whole_runs_of_the_schedule_count(session: Session) -> None:
    await run_nights(session, JOB, lambda night: 100 + night, count=12)
    change = "update matins.occurrence set {} where scheduled_at = $1"
    generation = {"generation": 1, "state": "partial", "closed_at": (DUE + timedelta(seconds=50)).isoformat()}
    await session.execute(change.format("generation = 2, report = $2"), DUE, {"generations": [generation]})
    await session.execute(change.format("state = 'failed'"), DUE - DAY)
    await session.execute(change.format("origin = 'ad_hoc', variant = 'ad-hoc'"), DUE - 2 * DAY)
    await session.execute(change.format("origin = 'backfill'"), DUE - 3 * DAY)
    runs = (await read_stats(session, JOB.name, 100, now=AFTER)).runs
    assert [run.seconds for run in runs] == [*range(100, 108), None, 49.5]
    assert [run.seconds for run in (await read_stats(session, JOB.name, 100, now=DUE - 5 * DAY)).runs] == [
        *range(100, 107)
    ], "what lies ahead is no run"


@pytest.mark.parametrize("width", [20, 40, 71, 72, 200])
async def test_any_width_any_number_of_runs_and_no_colour(
    session: Session, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    await known_job(session, JOB)
    print_stats(await read_stats(session, JOB.name, 30, now=AFTER), width)
    assert "no run has gone through yet" in capsys.readouterr().out
    await run_nights(session, JOB, lambda _: 60.0, count=1)
    stats = await read_stats(session, JOB.name, 30, now=AFTER)
    print_stats(stats, width)
    printed = capsys.readouterr().out
    assert "1.0m" not in printed
    assert "1m 00s" in printed
    assert "\x1b" not in printed
    assert stats.as_json()["duration"]["trend"] is None


async def test_an_unknown_job_is_refused_with_what_is_near(session: Session) -> None:
    await known_job(session, JOB)
    with pytest.raises(Refused, match="did you mean invoice-run"):
        await read_stats(session, "invoice-rum", 30)


async def test_each_service_marks_a_version_once_and_again_when_it_comes_back(session: Session) -> None:
    for number, version in enumerate(("1", "1", "2", "2", "1")):
        await record_deploy(session, service(f"w{number}"), version)
    await record_deploy(session, service("t0", "trigger"), "1")
    await mark_deploy(session, "matins-worker", "by hand", None, "ann", None)
    await record_deploy(session, service("w9"), "1")
    worker = "matins-worker"
    assert await deploys(session) == [
        (worker, "1"),
        (worker, "2"),
        (worker, "1"),
        ("matins-trigger", "1"),
        (worker, "by hand"),
    ]


async def test_of_many_that_start_at_once_one_marks(database_url: str, session: Session) -> None:
    async with database_on(database_url) as database:

        async def start(name: str) -> None:
            async with database.session() as own:
                await record_deploy(own, service(name), "3")

        await asyncio.gather(*(start(f"w{number}") for number in range(8)))
    assert await deploys(session) == [("matins-worker", "3")]


async def test_a_marker_of_another_system_is_in_the_audit_trail(session: Session) -> None:
    marked = await mark_deploy(session, "postgres", "17.2", DUE, "ann", "the new machines")
    assert (marked["version"], marked["at"]) == ("17.2", DUE)
    row: Any = await session.fetchrow("select kind, actor, reason, detail from matins.audit")
    assert tuple(row)[:3] == ("deploy_marked", "ann", "the new machines")
    assert (row["detail"]["system"], row["detail"]["version"]) == ("postgres", "17.2")
