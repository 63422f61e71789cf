"""The page of one occurrence: what it says is what `show` and the tables say, in every state."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from schemas.occurrence import Identity
from shared.job import Cron, EachWorker, EveryWorker, Job, RunsElsewhere, hours, minutes
from shared.postgres import Database, Session
from tests.console.occurrences import IDENTITY, NAME, TRACE, ended, row_of, run_again, taken_over
from tests.console.reading import Shown, shown
from tests.console.serving import Served, serving
from tests.integration.operate.night import ORDER, closed_night, expected_occurrence, nightly
from tests.integration.trigger.support import DAY, DUE, HOUR, MINUTE, claimant, decisions, job_at, live, planned
from tests.support.alerts import open_alert
from tests.support.fleet import until
from tests.support.ledger import database_on, session_on
from tests.support.logins import as_login, grant_rights, make_logins
from trigger.ad_hoc import fire_ad_hoc
from trigger.attempts import occurrence_attempts
from trigger.backfill import Range, backfill
from trigger.check_in import CheckIn, check_in
from trigger.claim import claim_due
from trigger.operate import cancel, fire
from trigger.pauses import pause
from trigger.show import show_occurrence

PAGE = f"/occurrences/{IDENTITY}"


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with database_on(database_url) as opened:
        yield opened


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    async with session_on(database_url) as opened:
        yield opened


async def page(url: str, identity: Identity = IDENTITY) -> Shown:
    """Look at an occurrence's page once, with a console of its own."""
    async with serving(url, trace_url="https://traces.example/t/{trace_id}") as console:
        return await page_of(console, identity)


async def page_of(console: Served, identity: Identity = IDENTITY) -> Shown:
    answer = await console.get(f"/occurrences/{identity}")
    assert answer.status == 200, answer.text
    return shown(answer.text)


async def test_a_closed_occurrence_says_what_show_says(database: Database, session: Session, database_url: str) -> None:
    claim = await taken_over(database, session)
    await ended(session, claim.id)
    await session.execute("update matins.occurrence set trace_context = $1", TRACE)
    told, found = await show_occurrence(session, IDENTITY), await page(database_url)
    assert found.heading == f"{IDENTITY} partial"
    facts = found.facts()
    assert (
        {name: int(facts[name]) for name in told["counts"]}
        == told["counts"]
        == {
            "succeeded": 22,
            "failed": 2,
            "dead": 1,
            "cancelled": 0,
            "total": 25,
        }
    )
    assert facts["Retries"] == str(told["report"]["retries"]) == "25"
    assert facts["An account took"].startswith("0.25s in the median")
    assert [row[:3] for row in found.table("errors")] == [
        [one["error_class"], one["state"], str(one["accounts"])] for one in told["report"]["error_classes"]
    ]
    assert found.table("errors")[0][3:] == ["account-00001, account-00002", "the tax service: 503"]
    assert "3 of 25 accounts did not succeed." in found.text
    assert f"python -m trigger rerun {IDENTITY} --failed" in found.text
    assert len(found.table("events")) == len(told["events"]) == 4
    assert [row[1] for row in found.table("events")] == [one["kind"] for one in told["events"]]
    links = found.links()
    assert links[NAME] == f"/jobs/{NAME}"
    assert links["0af7651916cd43dd8448eb211c80319c"] == "https://traces.example/t/0af7651916cd43dd8448eb211c80319c"
    assert links["22"] == f"/occurrences/{IDENTITY}/accounts?state=succeeded"
    assert links["account-00001"] == f"/occurrences/{IDENTITY}/account?id=account-00001"


async def test_its_life_is_told_in_its_order_with_who_took_over(
    database: Database, session: Session, database_url: str
) -> None:
    claim = await taken_over(database, session)
    await ended(session, claim.id)
    await run_again(session, claim.id)
    life = (await page(database_url)).items("life")
    begins = ["Expected, by the job's schedule", "Due", "Claimed"]
    told = [next((one for one in begins if step.removeprefix("3.0s later ").startswith(one)), step) for step in life]
    assert told[:3] == begins
    assert "by instance one on test, release 0" in life[2]
    assert "3.0s after it was due" in life[2]
    assert "region north" in life[2]
    (takeover,) = [step for step in life if "Taken over" in step]
    assert "by instance two on test, release 0" in takeover
    assert "from instance one on test, of which nothing was heard any more; epoch 2, 0 accounts read" in takeover
    (again,) = [step for step in life if "Run again: generation 2" in step]
    assert "by operator ann" in again
    assert "3 accounts: the tax service is back" in again
    closed = [step for step in life if "Closed" in step]
    assert ["partial" in closed[0], "succeeded" in closed[1]] == [True, True]
    assert "generation 1, 25 accounts: accounts failed" in closed[0]
    assert life.index(again) == life.index(closed[0]) + 1


async def test_attempts_are_those_of_the_command(database: Database, session: Session, database_url: str) -> None:
    await taken_over(database, session)
    told = await occurrence_attempts(session, IDENTITY)
    rows = (await page(database_url)).table("attempts")
    assert [(row[0], row[1], row[2]) for row in rows] == [("one", "won", "3.0s"), ("two", "lost", "4.0s")]
    assert [one["late_seconds"] for one in told["attempts"]] == [3.0, 4.0]
    assert rows[0][4:] == ["test, north release 0"]


async def test_earlier_generations_are_kept_with_their_errors(
    database: Database, session: Session, database_url: str
) -> None:
    claim = await taken_over(database, session)
    await ended(session, claim.id)
    await run_again(session, claim.id)
    found = await page(database_url)
    assert found.heading.endswith("succeeded")
    assert "Generation 1: partial, closed" in found.text
    assert "22 succeeded, 3 not" in found.text
    assert [row[0] for row in found.table("generation-1")] == ["TaxServiceDown", "killed_worker"]


async def counted_page(console: Served) -> Shown:
    """Wait until the accounts have been counted."""

    async def look() -> Shown | None:
        found = await page_of(console)
        return found if "Counted as of" in found.text else None

    found: Shown = await until(look)
    return found


async def test_while_it_runs_what_was_counted_is_what_show_counts(
    database: Database, session: Session, database_url: str
) -> None:
    claim = await taken_over(database, session)
    await session.execute(
        """update matins.ledger
              set state = case when position <= 20 then 'succeeded' else 'pending' end, epoch = 1, attempts = 1,
                  finished_at = case when position <= 20 then scheduled_at end,
                  error_class = case when position > 23 then 'TaxServiceDown' end,
                  error = case when position > 23 then 'no answer' end,
                  not_before = case when position > 23 then timestamptz '2126-08-25T03:00Z' end
            where occurrence_id = $1""",
        claim.id,
    )
    async with serving(database_url) as console:
        assert "is being counted" in (await page_of(console)).text, "nobody waits for it"
        found, told = await counted_page(console), await show_occurrence(session, IDENTITY)
    facts = found.facts()
    assert {name: int(facts[name]) for name in told["counts"]} == told["counts"]
    progress = told["progress"]
    assert f"{progress['done']} of {progress['total']} are done, {progress['per_second']:.1f} accounts/s" in found.text
    assert "2 wait for their next try, the next at 2126-08-25 03:00:00Z" in found.text
    assert [row[:3] for row in found.table("errors")] == [["TaxServiceDown", "pending", "2"]]
    assert facts["To be finished by"].endswith("which is over")


async def test_during_the_reading_of_accounts_it_says_so(session: Session, database_url: str) -> None:
    job = job_at()
    await live(session, "one")
    revision = await planned(session, job, DUE - DAY)
    await claim_due(session, job, revision, claimant(), now=DUE)
    found = await page(database_url)
    assert "Its accounts are being read, 0 so far" in found.text
    assert "No account has been read yet" in found.text


async def test_the_ones_before_and_after_are_linked(session: Session, database_url: str) -> None:
    job = job_at()
    await planned(session, job, DUE - DAY)
    await session.execute(
        """insert into matins.occurrence (job, scheduled_at, state, reason, revision, window_since, window_until,
                                          tzdata_version)
           values ($1, $2, 'skipped', 'superseded', 1, $2, $2, 'test')""",
        NAME,
        DUE + HOUR,
    )
    links = (await page(database_url)).links()
    before, after = DUE - DAY, DUE + DAY
    assert f"/occurrences/{Identity(NAME, after)}" in links.values()
    assert f"/occurrences/{Identity(NAME, DUE + HOUR)}" not in links.values()
    if await row_of(session, Identity(NAME, before)) is None:
        assert "None before it" in (await page(database_url)).text


async def test_open_alerts_stand_on_it(session: Session, database_url: str) -> None:
    occurrence, _ = await closed_night(session)
    await open_alert(session, "partial", str(occurrence.identity), occurrence_id=occurrence.id, told="it is partial")
    found = await page(database_url, occurrence.identity)
    assert f"partial:{occurrence.identity}" in found.text
    assert "it is partial" in found.text


class TestWhatDidNotRun:
    async def test_one_that_is_still_to_come(self, session: Session, database_url: str) -> None:
        at = (await session.fetchval("select date_trunc('second', clock_timestamp())")) + DAY + HOUR / 2
        await expected_occurrence(session, nightly(), at)
        found = await page(database_url, Identity("invoice-run", at))
        assert found.heading.endswith("expected")
        assert "It is due in 1d 0h." in found.text
        assert "python -m trigger cancel" in found.text
        assert "Nobody has attempted it" in found.text

    async def test_one_that_is_late(self, session: Session, database_url: str) -> None:
        at = (await session.fetchval("select date_trunc('second', clock_timestamp())")) - 2 * HOUR
        await expected_occurrence(session, nightly(), at)
        found = await page(database_url, Identity("invoice-run", at))
        assert "It was due 2h 00m ago. No trigger has claimed it yet." in found.text
        assert "python -m trigger fire invoice-run --at" in found.text

    async def test_one_of_a_paused_job(self, session: Session, database_url: str) -> None:
        await expected_occurrence(session, nightly())
        await pause(session, "invoice-run", ORDER)
        found = await page(database_url, Identity("invoice-run", DUE))
        assert "by ann: the tax service is back (skip)" in found.text
        assert "python -m trigger resume invoice-run" in found.text

    async def test_one_that_was_missed(self, session: Session, database_url: str) -> None:
        job = job_at()
        revision = await planned(session, job, DUE - DAY)
        await claim_due(session, job, revision, claimant(), now=DUE + 21 * HOUR)
        found = await page(database_url)
        assert found.heading.endswith("missed")
        assert "It never ran: not claimed within catch_up_within." in found.text
        at = "2026-08-25T02:00Z"
        assert f"python -m trigger backfill {NAME} --from {at} --until {at} --dry-run" in found.text
        assert [step.split(" 2026")[0] for step in found.items("life")][1:] == [
            "Due",
            found.items("life")[2].split(" 2026")[0],
        ]
        assert "Missed" in found.items("life")[2]

    async def test_what_is_advised_for_a_missed_one_can_be_done(self, session: Session, database_url: str) -> None:
        job = job_at()
        revision = await planned(session, job, DUE - DAY)
        await claim_due(session, job, revision, claimant(), now=DUE + 21 * HOUR)
        await backfill(session, NAME, Range(DUE, DUE), ORDER, now=DUE + 22 * HOUR)
        found = await page(database_url)
        assert "It waits for its turn in a backfill." in found.text
        assert "it was missed (not claimed within catch_up_within): backfill 1: the tax service is back" in found.text

    async def test_one_that_another_was_in_the_way_of(
        self, database: Database, session: Session, database_url: str
    ) -> None:
        job = job_at("0 * * * *")
        await taken_over(database, session, 3, job)
        await claim_due(session, job, 1, claimant("two"), now=DUE + HOUR + MINUTE)
        found = await page(database_url, Identity(NAME, DUE + HOUR))
        assert found.heading.endswith("skipped")
        assert f"another occurrence of the job still ran ({IDENTITY})" in found.text

    async def test_one_that_was_joined_into_a_later_one(self, session: Session, database_url: str) -> None:
        job = job_at("0 * * * *")
        await live(session, "one")
        revision = await planned(session, job, DUE)
        await claim_due(session, job, revision, claimant(), now=DUE + 3 * HOUR)
        found = await page(database_url, Identity(NAME, DUE + HOUR))
        assert found.heading.endswith("coalesced")
        later = Identity(NAME, DUE + 3 * HOUR)
        assert f"its time is that of {later}" in found.text
        assert found.links()[str(later)] == f"/occurrences/{later}"

    async def test_one_that_somebody_cancelled_before(self, session: Session, database_url: str) -> None:
        await expected_occurrence(session, nightly())
        await cancel(session, Identity("invoice-run", DUE), ORDER)
        found = await page(database_url, Identity("invoice-run", DUE))
        assert "It was decided not to run it: cancelled by ann: the tax service is back" in found.text


class TestOtherJobs:
    async def test_what_runs_elsewhere_has_no_accounts(self, session: Session, database_url: str) -> None:
        bounds: dict[str, Any] = {"start_within": minutes(10), "finish_within": hours(1), "heard_within": hours(20)}
        await planned(session, RunsElsewhere(NAME, Cron("0 2 * * *"), **bounds), DUE - DAY)
        by = ("cron", "key 0123abcd", "one")
        await check_in(session, CheckIn(NAME, "start", *by, run="pod-7"), now=DUE + MINUTE)
        found = await page(database_url)
        assert "It runs elsewhere (run pod-7)" in found.text
        assert "is being counted" not in found.text
        await check_in(session, CheckIn(NAME, "fail", *by, run="pod-7", message="no disk"), now=DUE + 5 * MINUTE)
        found = await page(database_url)
        assert "It is failed: reported by cron: no disk." in found.text
        assert "It ran elsewhere, from 2026-08-25 02:01:00Z to 2026-08-25 02:05:00Z: failed." in found.text
        assert [step for step in found.items("life") if "Start reported" in step]
        async with serving(database_url) as console:
            assert "The job runs elsewhere" in (await console.get(f"{PAGE}/accounts")).text

    async def test_a_worker_s_own(self, session: Session, database_url: str) -> None:
        job = Job(
            "heartbeat",
            schedule=Cron("0 * * * *"),
            accounts=EachWorker(),
            handler=EveryWorker("tests.console.occurrences:nothing"),
            decisions=decisions(catch_up="skip"),
            coordination="every",
        )
        await planned(session, job, DUE - DAY)
        for at in (DUE, DUE + HOUR):
            await session.execute(
                """select * from matins.open_own(
                       $1, $2, $3, 'north', 1, $4, $5, $6, interval '5 minutes', 'test', '', $2)""",
                "heartbeat",
                at,
                "w-1",
                "running" if at == DUE else "missed",
                None if at == DUE else "the worker did not live",
                at - HOUR,
            )
        own = Identity("heartbeat", DUE, "@w-1")
        row = await row_of(session, own)
        await ended(session, row["id"], failed=1, dead=0)
        found = await page(database_url, own)
        assert found.heading == f"{own} failed"
        assert "that worker runs the next instant" in found.text
        assert found.links()["w-1"] == f"/occurrences/{own}/account?id=w-1"
        later = Identity("heartbeat", DUE + HOUR, "@w-1")
        assert f"/occurrences/{later}" in found.links().values()
        assert "It never ran: the worker did not live." in (await page(database_url, later)).text

    async def test_one_beside_the_schedule(self, session: Session, database_url: str) -> None:
        job = job_at()
        await planned(session, job, DUE - DAY)
        won: Any = await fire_ad_hoc(session, NAME, ORDER, None, None)
        found = await page(database_url, won.claim.identity)
        assert found.heading == f"{won.claim.identity} claimed"
        assert "Ordered beside the schedule" in found.items("life")[0]
        assert "by operator ann" in found.text
        assert f"/occurrences/{NAME}:" in found.node.to_html(), "beside it stand those of the schedule"


async def test_one_fired_by_hand_says_by_whom(session: Session, database_url: str) -> None:
    await expected_occurrence(session, nightly("fired-run"))
    await fire(session, Identity("fired-run", DUE), ORDER)
    life = (await page(database_url, Identity("fired-run", DUE))).items("life")
    (step,) = [one for one in life if "Fired" in one]
    assert "by operator ann" in step
    assert "the tax service is back" in step


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nightly:2026-08-25T03:00Z", "is not on the plan; nearest: 2026-08-25T02:00Z and 2026-08-26T02:00Z"),
        ("nightli:2026-08-25T02:00Z", "did you mean nightly?"),
        ("nightly", "write it as JOB:2026-08-25T02:00Z (UTC)"),
        ("nightly@w-1:2026-08-25T02:00Z", "is not on the plan"),
        ("nightly+ad-hoc-1:2026-08-25T02:00Z", "is not on the plan"),
        ("%3Cscript%3E", "not an occurrence"),
    ],
)
@pytest.mark.parametrize("below", ["", "/accounts", "/account?id=a"])
async def test_what_there_is_not_is_404_with_what_is_near(
    session: Session, database_url: str, name: str, told: str, below: str
) -> None:
    await planned(session, job_at(), DUE - DAY)
    async with serving(database_url) as console:
        answer = await console.get(f"/occurrences/{name}{below}")
    assert answer.status == 404
    assert told in shown(answer.text).text
    assert "<script>" not in answer.text


async def test_a_pruned_occurrence_says_so(database: Database, session: Session, database_url: str) -> None:
    claim = await taken_over(database, session)
    await ended(session, claim.id)
    await session.execute("update matins.environment set retained_from = $1", DUE + DAY)
    if await session.fetchval("select count(*) from matins.environment") == 0:
        await session.execute("insert into matins.environment (name, retained_from) values ('test', $1)", DUE + DAY)
    found = await page(database_url)
    assert "Its accounts were pruned" in found.text
    assert not [href for href in found.links().values() if "/account" in href]
    async with serving(database_url) as console:
        for below in ("accounts", "account?id=account-00001"):
            assert "Its accounts were pruned" in (await console.get(f"{PAGE}/{below}")).text


async def test_no_more_than_the_latest_events_are_shown(session: Session, database_url: str) -> None:
    occurrence, _ = await closed_night(session)
    await session.execute(
        """insert into matins.audit (kind, job, occurrence_id, instance, actor, actor_kind, reason)
           select 'called', 'invoice-run', $1, 'i', 'caller-' || n, 'caller', 'again'
             from generate_series(1, 1000) n""",
        occurrence.id,
    )
    found = await page(database_url, occurrence.identity)
    rows = found.table("events")
    assert (len(rows), rows[-1][2]) == (200, "caller caller-1000")
    assert "These are the latest" in found.text
    assert [step for step in found.items("life") if "Closed" in step], "its life is told nevertheless"


async def test_a_reader_s_login_is_enough(database: Database, session: Session, database_url: str) -> None:
    await make_logins(session)
    await grant_rights(session, {})
    claim = await taken_over(database, session)
    async with serving(as_login(database_url, "reader")) as console:
        found = await counted_page(console)
        assert "0 of 25 are done" in found.text
        await ended(session, claim.id)
        for path, told in (
            (PAGE, "3 of 25 accounts did not succeed"),
            (f"{PAGE}/accounts", "account-00001"),
            (f"{PAGE}/accounts?q=account-0001&state=succeeded", "account-00010"),
            (f"{PAGE}/account?id=account-00001", "TaxServiceDown"),
        ):
            answer = await console.get(path)
            assert (answer.status, told in shown(answer.text).text) == (200, True), path
