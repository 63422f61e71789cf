"""The page of a job: its numbers are those of the command line and of SQL, and it holds whatever a job can be."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from schemas.occurrence import format_instant
from shared.definition import definition_of
from shared.durations import show_seconds
from shared.exclusions import Weekdays
from shared.growth import told_duration, told_lag
from shared.job import Cron, Decisions, EachWorker, Every, EveryWorker, Except, Job, RunsElsewhere, hours, minutes
from shared.postgres import Session, database_now
from shared.timing import Timing
from tests.console.job_page import JobPage, job_page, revise, worker_runs
from tests.console.night import HOSTILE, LONG
from tests.console.reading import said_by
from tests.console.serving import serving
from tests.integration.operate.night import closed_night, expected_occurrence, nightly
from tests.support.alerts import open_alert
from tests.support.growth import DAY, known_job, run_nights
from tests.support.ledger import DUE, running_occurrence, session_on
from tests.support.logins import as_login, grant_rights, make_logins
from tests.support.proxy import Proxy
from trigger.deploy_marker import mark_deploy
from trigger.preview import preview
from trigger.show import list_occurrences
from trigger.stats import Stats, read_stats

HOUR = 3600.0
JOB = nightly()
GAP = Cron("30 2 * * *", "Europe/Berlin", "skip", "first")


async def growing(session: Session) -> None:
    """Record fifty nights of which each took longer, with attempts, failures, and changes in between."""
    await run_nights(session, JOB, lambda night: 12 * HOUR + 760 * night, lag=lambda night: 1.0 + night)
    await session.execute(
        """insert into matins.attempt (job, scheduled_at, instance, won)
           select job, scheduled_at, 'trigger-' || one, one = 1 from matins.occurrence, generate_series(1, 3) as one"""
    )
    await session.execute("update matins.occurrence set state = 'failed' where scheduled_at = $1", DUE - 7 * DAY)
    await mark_deploy(session, "tax-service", "9.1", DUE - 5 * DAY, "ann", "new rates")
    await mark_deploy(session, "postgres", "16.4", DUE - 20 * DAY, "bob", None)


async def page_of(database_url: str, path: str, status: int = 200) -> JobPage:
    async with serving(database_url) as console:
        return await job_page(console, path, status)


def shown(value: Any) -> str:
    """Write a value of `stats --json` as a cell has it."""
    return "-" if value is None else str(value)


def instant(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


@pytest.mark.parametrize("runs", [60, 30, 120])
async def test_the_charts_hold_the_numbers_and_the_sentences_of_stats(database_url: str, runs: int) -> None:
    async with session_on(database_url) as session:
        await growing(session)
        stats: Stats = await read_stats(session, JOB.name, runs)
    page = await page_of(database_url, f"{JOB.name}?runs={runs}")
    told = stats.as_json()["runs"]
    assert len(told) == min(runs, 50)
    assert page.numbers("duration") == [
        [instant(one["scheduled_at"]), one["state"], "10", show_seconds(one["seconds"]), shown(one["seconds"]),
         shown(one["fitted_seconds"])]
        for one in told
    ]  # fmt: skip
    assert page.numbers("lag") == [
        [instant(one["scheduled_at"]), one["state"], show_seconds(one["lag_seconds"]), shown(one["lag_seconds"])]
        for one in told
    ]
    assert page.numbers("attempts") == [
        [instant(one["scheduled_at"]), one["state"], shown(one["attempts"]), shown(one["wins"]), one["claimed_by"]]
        for one in told
    ]
    sentences = [said_by(one) for one in page.main.query(".graph .told")]
    expected = (told_duration(stats.duration), told_lag(stats.lag), f"{stats.attempts} attempts at {len(told)} runs")
    for sentence, one in zip(sentences, expected, strict=True):
        assert sentence.lower().startswith(one.lower())
    assert "at this growth the run meets the next one on" in sentences[0]


async def test_what_was_changed_stands_in_the_charts_and_beneath_them(database_url: str) -> None:
    async with session_on(database_url) as session:
        await growing(session)
        stats = await read_stats(session, JOB.name, 60)
    page = await page_of(database_url, JOB.name)
    assert page.rows("changes") == [
        ["1", instant(DUE - 20 * DAY), "postgres", "16.4", "bob", "-"],
        ["2", instant(DUE - 5 * DAY), "tax-service", "9.1", "ann", "new rates"],
    ]
    assert len(stats.changes) == 2
    for chart in ("duration", "lag", "attempts"):
        for shape in ("wide", "narrow"):
            drawn = page.one(f"#{chart} svg.{shape}")
            assert [said_by(one) for one in drawn.query(".changed text")] == ["1", "2"]
            assert (drawn.attrs["role"], len(drawn.query(".changed line"))) == ("img", 2)
            named = [page.one(f"#{one}") for one in drawn.attrs["aria-labelledby"].split()]
            assert [one.name for one in named] == ["title", "desc"]
            assert all(said_by(one) for one in named)


@pytest.mark.parametrize("schedule", [Cron("0 2 * * *"), GAP, Except(GAP, [Weekdays(["sat", "sun"])]), Every(hours=7)])
async def test_the_next_instants_are_those_of_preview(database_url: str, schedule: Any) -> None:
    job = nightly(schedule=schedule, jitter=minutes(5))
    async with session_on(database_url) as session:
        await known_job(session, job)
    page = await page_of(database_url, job.name)
    rows = page.rows("instants")
    first = datetime.fromisoformat(rows[0][0].removesuffix(" no run").replace(" ", "T"))
    timing = Timing.of(job)
    expected = preview(timing, first - timedelta(seconds=1), first + timedelta(days=90), 10)
    assert len(rows) == len(expected)
    for row, one in zip(rows, expected, strict=True):
        utc = str(one.scheduled_at).replace("T", " ") + ("" if one.due_at else " no run")
        local = [] if schedule.zone == "UTC" else [one.local.replace("T", " ")]
        due = one.due_at.replace("T", " ") if one.due_at else "-"
        assert row == [utc, due, *local, one.note or "-"]
    assert sum("no run" not in row[0] for row in rows) == 10


async def test_the_next_clock_change_is_explained_and_who_else_is_planned_then(database_url: str) -> None:
    job, other = nightly(schedule=GAP), nightly("backup", schedule=GAP)
    async with session_on(database_url) as session:
        await known_job(session, job)
        await known_job(session, other)
        following = job.schedule.next_after(await database_now(session))
        assert following is not None
        await expected_occurrence(session, other, following)
    page = await page_of(database_url, job.name)
    assert "Clocks in Europe/Berlin go" in page.text
    assert "does not exist, left out (gap=skip)" in page.text or "runs the first time only (fold=first)" in page.text
    rows = page.rows("instants")
    assert [row[-1] for row in rows] == ["backup"] + ["-"] * 9


async def test_the_occurrences_are_those_of_the_command_line_and_of_sql(database_url: str) -> None:
    async with session_on(database_url) as session:
        await growing(session)
        change = "update matins.occurrence set {} where job = $1 and scheduled_at = $2"
        await session.execute(change.format("origin = 'backfill'"), JOB.name, DUE - DAY)
        await session.execute(
            change.format("origin = 'ad_hoc', variant = '+x', fired_by = 'ann', fire_reason = 'a customer asked'"),
            JOB.name,
            DUE - 2 * DAY,
        )
        await session.execute(change.format("generation = 2"), JOB.name, DUE - 3 * DAY)
        listed = await list_occurrences(session, JOB.name, None, None, 25)
        lags: list[Any] = await session.fetch(
            """select extract(epoch from claimed_at - due_at)::float as lag, claimed_by from matins.occurrence
                where job = $1 order by scheduled_at desc limit 25""",
            JOB.name,
        )
    page = await page_of(database_url, JOB.name)
    rows = page.rows("occurrences")
    assert [[row[1].split()[0], *row[2:5]] for row in rows] == [
        [one["state"], f"{one['succeeded']} of {one['total']}", show_seconds(one["seconds"]), show_seconds(lag["lag"])]
        for one, lag in zip(listed, lags, strict=True)
    ]
    links = [str(one.attrs["href"]) for one in page.main.query("table.listed th a")]
    assert links == [f"/occurrences/{one['occurrence']}" for one in listed]
    named = {row[0].partition("Z ")[2]: row[5] for row in rows}
    assert named == {"": "test", "backfill": "test", "+x ad hoc": "test fired by ann", "run 2 times": "test"}
    states: list[Any] = await _states(database_url)
    letters = [letter for letter, link in page.cells() if link]
    assert letters == ["F" if one["state"] == "failed" else "S" for one in states], "without the ad-hoc one"


async def _states(database_url: str) -> list[Any]:
    async with session_on(database_url) as session:
        return await session.fetch(
            "select state from matins.occurrence where job = $1 and origin <> 'ad_hoc' order by scheduled_at", JOB.name
        )


async def test_earlier_pages_show_every_occurrence_once(database_url: str) -> None:
    async with session_on(database_url) as session:
        await run_nights(session, JOB, lambda _: 60.0, count=130)
    async with serving(database_url) as console:
        for told, read, size in (
            ("Earlier ones", lambda page: [link for _, link in page.cells() if link][::-1], 60),
            ("Earlier ones than these", lambda page: [f"/occurrences/{JOB.name}:{row[0].replace(' ', 'T')}"
                                                      for row in page.rows("occurrences")], 25),
        ):  # fmt: skip
            seen: list[str] = []
            path: str | None = f"/jobs/{JOB.name}"
            while path is not None:
                page = await job_page(console, path)
                assert len(read(page)) <= size
                seen += read(page)
                path = page.link(told)
            assert seen == [f"/occurrences/{JOB.name}:{format_instant(DUE - day * DAY)}" for day in range(130)]
        beyond = await job_page(console, f"/jobs/{JOB.name}?before=2020-01-01T00:00Z")
        assert "Nothing is recorded before 2020-01-01 00:00Z. Go to the latest" in beyond.text
        assert beyond.link("The latest") == f"/jobs/{JOB.name}?runs=60"


async def test_what_nobody_was_there_to_plan_is_a_hole_beside_what_ran(database_url: str) -> None:
    async with session_on(database_url) as session:
        await run_nights(session, JOB, lambda _: 60.0, count=70)
    page = await page_of(database_url, JOB.name)
    assert len([link for _, link in page.cells() if link]) == 60
    assert next(told for told, link in page.cells() if not link) == "?2026-08-26T02:00Z nobody was there to plan it"
    assert "Since 2026-08-25 02:00Z nobody was there to plan it" in page.text


async def test_of_what_every_worker_runs_no_instant_is_cut_in_two(database_url: str) -> None:
    decisions = Decisions(
        catch_up="skip", catch_up_within=hours(1), overlap="skip", start_within=minutes(1), finish_within=minutes(2)
    )
    job = Job("refresh", Every(minutes=5), EachWorker(), EveryWorker("prices:refresh"), decisions, coordination="every")
    workers = [f"worker-{number}" for number in range(7)]
    instants = [DUE - minutes(5) * place for place in range(20)]
    async with session_on(database_url) as session:
        await known_job(session, job)
        await worker_runs(session, job, workers, instants)
    async with serving(database_url) as console:
        first = await job_page(console, job.name)
        assert len(first.cells()) == 63, "nine instants of seven workers: the ninth is whole"
        second = await job_page(console, str(first.link("Earlier ones")))
        third = await job_page(console, str(second.link("Earlier ones")))
        assert third.link("Earlier ones") is None
        seen = [link for page in (third, second, first) for _, link in page.cells()]
    assert len(seen) == len(set(seen)) == 140
    assert len(first.rows("occurrences")) == 28
    assert "Each worker runs an occurrence of its own" in first.text
    assert first.rows("occurrences")[0][0] == "2026-08-25 02:00Z @worker-6"


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
async def test_any_number_of_runs(database_url: str, count: int) -> None:
    async with session_on(database_url) as session:
        await known_job(session, JOB)
        await run_nights(session, JOB, lambda night: 60.0 + night % 7, count=count)
    page = await page_of(database_url, JOB.name)
    assert sum(bool(link) for _, link in page.cells()) == min(count, 60)
    assert len(page.main.query("#duration svg.chart")) == (2 if count else 0)
    assert len(page.numbers("duration")) == min(count, 60)
    if count == 0:
        assert "Nothing was due yet since the job is known." in page.text
        assert "No scheduled occurrence was claimed yet." in page.text
    if 0 < count < 10:
        assert f"Growth is told from 10 runs on that went through; so far {count} did." in page.text


async def test_what_runs_is_there_with_what_sql_counts(database_url: str, broker_url: str) -> None:
    async with session_on(database_url) as session:
        running = await running_occurrence(session, JOB, [f"a{number}" for number in range(40)])
        await session.execute(
            """update matins.ledger set state = case when position <= 3 then 'failed' else 'succeeded' end,
                   error_class = case when position <= 3 then 'TaxServiceDown' end, finished_at = clock_timestamp()
                where occurrence_id = $1 and position <= 12""",
            running.id,
        )
    async with serving(database_url, broker_url) as console:
        page = await job_page(console, JOB.name)
    progress = page.one(".progress")
    assert "12 of 40, 3 not succeeded" in said_by(progress)
    assert page.link(f"{JOB.name}:{format_instant(DUE)}") == f"/occurrences/{JOB.name}:{format_instant(DUE)}"
    assert "runs" in said_by(page.one(".standings"))


async def test_what_cannot_be_counted_in_time_is_named_all_the_same(database_url: str, broker_url: str) -> None:
    async with session_on(database_url) as session, session_on(database_url) as slow:
        await running_occurrence(session, JOB, ["a1"])
        async with slow.transaction(), serving(database_url, broker_url) as console:
            # Of all that is read only the counting waits for it.
            await slow.execute("lock table matins.channel in access exclusive mode")
            page = await job_page(console, JOB.name)
    assert f"{JOB.name}:{format_instant(DUE)} its accounts are being counted" in page.text


async def test_how_it_stands_and_who_decided_that(database_url: str) -> None:
    write = "update matins.job set {} where name = $1"
    async with session_on(database_url) as session, serving(database_url) as console:
        await known_job(session, JOB)
        await expected_occurrence(session, JOB, DUE)
        page = await job_page(console, JOB.name)
        assert "Late. What was due at 2026-08-25 02:00Z was claimed by nobody." in page.text
        await session.execute(write.format("paused_at = now(), pause_reason = '3 failed'"), JOB.name)
        page = await job_page(console, JOB.name)
        assert said_by(page.one(".standings")) == "paused"
        assert "by its own declaration: 3 failed. What falls due meanwhile is skipped." in page.text
        await session.execute(write.format("paused_by = 'ann', meanwhile = 'hold'"), JOB.name)
        page = await job_page(console, JOB.name)
        assert "by ann: 3 failed. What falls due meanwhile is held until somebody resumes it." in page.text
        assert "As long as the job is paused, none of them runs." in page.text
        await session.execute(
            write.format("retired_at = now(), retired_by = 'bob', retire_reason = 'replaced'"), JOB.name
        )
        page = await job_page(console, JOB.name)
        assert said_by(page.one(".standings")) == "retired"
        assert "by bob: replaced. Nothing of it is due any more" in page.text


async def test_its_open_alerts_stand_there_and_the_others_are_a_link_away(database_url: str) -> None:
    async with session_on(database_url) as session:
        await closed_night(session)
        for number in range(12):
            await open_alert(session, "failed", f"{JOB.name}:2026-08-{number + 1:02}T02:00Z", told=f"{number} failed")
        await open_alert(session, "failed", "other:2026-08-01T02:00Z")
    page = await page_of(database_url, JOB.name)
    assert len(page.main.query(".alerts > li")) == 10
    assert "12 open alerts" in said_by(page.one(".standings"))
    assert page.link("and 2 more") == page.link("alerts") == f"/alerts?job={JOB.name}"
    assert page.link("audit trail") == f"/audit?job={JOB.name}"


async def test_its_definitions_are_there_with_what_each_changed(database_url: str) -> None:
    async with session_on(database_url) as session:
        await known_job(session, JOB)
        for tries in range(3, 15):
            await revise(session, nightly(max_tries=tries))
    page = await page_of(database_url, JOB.name)
    rows = page.rows("definitions")
    assert [row[0] for row in rows] == ["13 now", *(str(number) for number in range(12, 3, -1))]
    assert [row[3] for row in rows[:2]] == ["max_tries: 13 → 14", "max_tries: 12 → 13"]
    assert rows[0][2].startswith("trigger-")


async def test_a_job_that_runs_elsewhere_has_its_page(database_url: str) -> None:
    job = RunsElsewhere("dump", GAP, start_within=minutes(10), finish_within=hours(1), heard_within=hours(20))
    async with session_on(database_url) as session:
        await run_nights(session, job, lambda _: 1800.0, count=12)
    page = await page_of(database_url, "dump")
    assert "Something else runs it, and checks in here" in page.text
    assert "Of 12 of the runs no attempt is recorded" in page.text


@pytest.mark.parametrize("coordination", ["leader", "external"])
async def test_whoever_attempts_a_job_it_has_its_page(database_url: str, coordination: Any) -> None:
    async with session_on(database_url) as session:
        await run_nights(session, nightly(coordination=coordination), lambda _: 60.0, count=3)
    assert f'coordination="{coordination}"' in (await page_of(database_url, JOB.name)).text


async def test_what_a_later_release_has_recorded_is_shown_as_it_stands(database_url: str) -> None:
    definition = definition_of(JOB)
    definition["decisions"]["overlap"] = "give_way"
    definition["quorum"] = 3
    async with session_on(database_url) as session:
        await run_nights(session, JOB, lambda _: 60.0, count=3)
        await revise(session, JOB, definition)
    text = (await page_of(database_url, JOB.name)).text
    assert 'which knows what it means: decisions.overlap="give_way"' in text
    assert "which knows what it means: quorum=3" in text

    definition["schedule"] = {"kind": "tides", "port": "Hull"}
    async with session_on(database_url) as session:
        await revise(session, JOB, definition)
    page = await page_of(database_url, JOB.name)
    assert "this release cannot read it" in page.text
    assert 'schedule.port="Hull"' in page.text
    assert "cannot say how its runs compare with it" in page.text
    assert sum(bool(link) for _, link in page.cells()) == 3, "what ran is known all the same"


async def test_hostile_text_is_shown_as_text_and_cut(database_url: str) -> None:
    async with session_on(database_url) as session:
        await run_nights(session, JOB, lambda _: 60.0, count=12)
        for number, text in enumerate([*HOSTILE, LONG, "\\u0000 %00 \x01\x1b[31m \u200f"]):
            said = text[:100] + f" {number}"
            await session.execute(
                "insert into matins.deploy (system, version, at, actor, reason) values ($1, $2, $3, $4, $2)",
                said, text, DUE - timedelta(hours=number), said,
            )  # fmt: skip
            night = DUE - number * DAY
            await session.execute(
                "update matins.occurrence set claimed_by = $2, fired_by = $2, reason = $3 where scheduled_at = $1",
                night, said, text,
            )  # fmt: skip
            await revise(session, JOB, definition_of(JOB) | {"description": text, "queue": text})
        await session.execute(
            "update matins.job set paused_at = now(), paused_by = $2, pause_reason = $3 where name = $1",
            JOB.name, HOSTILE[3], LONG,
        )  # fmt: skip
    page = await page_of(database_url, JOB.name)
    assert [one.name for one in page.main.query("script, img, iframe, style")] == []
    assert not any(name.startswith("on") or name == "style" for one in page.main.query("*") for name in one.attrs or {})
    assert not {"\u202e", "\u2066", "\u200f", "\x01", "\x1b", "\x00"} & set(page.html)
    assert "…[cut from" in page.html
    assert len(page.html) < 400_000, "a text of a megabyte is nowhere whole"
    assert "<script>document.title='owned'</script>" in page.text


async def test_a_reader_s_login_is_enough(database_url: str, broker_url: str) -> None:
    async with session_on(database_url) as session:
        await running_occurrence(session, JOB, ["a1"])
        await make_logins(session)
        await grant_rights(session, {JOB.name: JOB})
    async with serving(as_login(database_url, "reader"), broker_url) as console:
        page = await job_page(console, JOB.name)
    assert "0 of 1" in said_by(page.one(".progress"))


async def test_while_the_database_is_away_it_shows_what_was_known(database_url: str) -> None:
    async with session_on(database_url) as session:
        await growing(session)
    async with Proxy(database_url) as wire, serving(wire.url) as console:
        before = await job_page(console, JOB.name)
        wire.refuse()
        wire.reset()
        away = await job_page(console, JOB.name)
        assert "The database does not answer. This is what was known at" in away.text
        assert away.numbers("duration") == before.numbers("duration")
        assert away.rows("occurrences") == before.rows("occurrences")
        await job_page(console, f"{JOB.name}?runs=30", 503)


async def test_an_unknown_job_is_not_found_and_near_names_are_offered(database_url: str) -> None:
    async with session_on(database_url) as session:
        await known_job(session, JOB)
    async with serving(database_url) as console:
        page = await job_page(console, "/jobs/invoice-rum", 404)
        assert "there is no job 'invoice-rum'; did you mean invoice-run?" in page.text
        page = await job_page(console, "/jobs/%3Cscript%3Ealert(1)%3C%2Fscript%3E%E2%80%AE", 404)
        assert page.main.query("script") == []
        assert "\u202e" not in page.html


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("before=yesterday", "before: 'yesterday' is not an instant; write 2026-08-25T02:00Z"),
        ("before=2026-08-25T02:00", "before: '2026-08-25T02:00' names no zone"),
        ("before=0001-01-01T00:00%2B14:00", "before: '0001-01-01T00:00+14:00' lies outside the years 1 to 9999 in UTC"),
        ("runs=1000000", "runs: '1000000' is unknown; valid are 60, 30, 120"),
    ],
)
async def test_a_question_that_cannot_be_read_says_what_is_valid(database_url: str, query: str, told: str) -> None:
    async with session_on(database_url) as session:
        await known_job(session, JOB)
    assert told in (await page_of(database_url, f"{JOB.name}?{query}", 400)).text


@pytest.mark.parametrize("before", ["0001-01-01T00:00Z", "9999-12-31T23:59:59Z", "2026-08-25T04:00:00.5%2B02:00"])
async def test_any_instant_can_be_asked_for(database_url: str, before: str) -> None:
    async with session_on(database_url) as session:
        await run_nights(session, JOB, lambda _: 60.0, count=3)
    await page_of(database_url, f"{JOB.name}?before={before}")
