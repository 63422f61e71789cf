import re
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import anyio.lowlevel
import orjson
import pytest

from schemas.occurrence import Identity
from shared.close import close
from shared.definition import fingerprints
from shared.fleet import Instance, register_instance
from shared.job import Cron
from shared.postgres import Session
from shared.settings import Settings, load_settings
from shared.terminal import Refused
from shared.terminal_tables import Times
from tests.integration.operate.night import ORDER, closed_night, expected_occurrence, nightly
from tests.support.broker import topology_of
from tests.support.ledger import DUE, running_occurrence, session_on
from trigger.await_end import await_end
from trigger.commands_print import print_accounts, print_occurrence, print_status
from trigger.deploy import migrate_broker
from trigger.operate import Choice, fire, rerun
from trigger.show import list_accounts, list_occurrences, show_occurrence
from trigger.status import read_status

DAY = timedelta(days=1)
NOBODY = [
    "no trigger is live: nothing is planned, claimed or published",
    "no worker is live: nothing is executed",
]


async def start_fleet(session: Session) -> None:
    """Have a trigger live, and a worker that can run the jobs."""
    able = dict.fromkeys(("invoice-run", "slow-run"))
    for kind, jobs in (("trigger", {}), ("worker", able)):
        await register_instance(session, Instance(f"{kind}-1", kind, "host", "0.1.0", "", "2026f"), jobs)


def settings_of(**values: str) -> Settings:
    return load_settings({f"MATINS_{name.upper()}": value for name, value in values.items()}, need=frozenset())


async def test_a_closed_occurrence_shows_everything(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    async with session_on(database_url) as session:
        occurrence, _ = await closed_night(session)
        shown = await show_occurrence(session, occurrence.identity)
    assert shown["counts"] == {"succeeded": 1, "failed": 2, "dead": 1, "cancelled": 1, "total": 5}
    assert {one["error_class"] for one in shown["report"]["error_classes"]} >= {"TaxServiceDown", "killed_worker"}
    assert [one["kind"] for one in shown["events"]] == ["closed"]
    assert shown["progress"] is None
    orjson.dumps(shown)
    print_occurrence(shown, Times("Europe/Berlin"))
    printed = capsys.readouterr().out
    assert "invoice-run:2026-08-25T02:00Z: partial" in printed
    assert "2026-08-25 02:00:00Z (04:00:00 CEST)" in printed
    assert "TaxServiceDown" in printed


async def test_one_that_runs_again_shows_progress_generations_and_attempts(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with session_on(database_url) as session:
        await expected_occurrence(session, nightly("fired-run"))
        await fire(session, Identity("fired-run", DUE), ORDER)
        fired = await show_occurrence(session, Identity("fired-run", DUE))
        occurrence, _ = await closed_night(session)
        await rerun(session, occurrence.identity, Choice(), ORDER)
        shown = await show_occurrence(session, occurrence.identity)
    assert [one["won"] for one in fired["attempts"]] == [True]
    assert shown["counts"]["pending"] == 3
    assert (shown["progress"]["done"], shown["progress"]["total"]) == (2, 5)
    (ended,) = shown["generations"]
    assert ended["state"] == "partial"
    assert {one["error_class"] for one in ended["error_classes"]} == {
        "TaxServiceDown",
        "killed_worker",
        "invalid_account",
    }
    assert shown["report"] is None
    for one in (fired, shown):
        print_occurrence(one, Times("Europe/Berlin"))
    printed = capsys.readouterr().out
    assert "Errors of generation 1" in printed
    assert "killed_worker" in printed
    assert re.search(r"1 +partial +20\S+ \S+Z \(", printed)
    assert "reconciled" not in printed
    assert "by ann: the tax service is back" in printed
    assert "2 of 5" in printed


async def test_what_waits_for_its_next_try_is_told_with_its_time_and_error(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with session_on(database_url) as session:
        occurrence = await running_occurrence(session, nightly(), ["a", "b", "c"])
        identity = occurrence.identity
        await session.execute(
            """update matins.ledger set state = 'succeeded', epoch = 1, finished_at = $1 where account = 'c'""", DUE
        )
        assert (await show_occurrence(session, identity))["progress"]["seconds_left"] is not None
        await session.execute(
            """update matins.ledger set not_before = '2126-08-25T03:00Z', epoch = 1, attempts = 1,
                      error_class = 'TaxServiceDown', error = 'no answer' where account in ('a', 'b')"""
        )
        shown = await show_occurrence(session, identity)
        print_occurrence(shown, Times())
        print_accounts(await list_accounts(session, identity, ["pending"], None, 10), Times())
    assert (shown["progress"]["waiting"], shown["progress"]["seconds_left"]) == (2, None)
    (one,) = shown["progress"]["error_classes"]
    assert (one["error_class"], one["state"], one["accounts"]) == ("TaxServiceDown", "pending", 2)
    printed = capsys.readouterr().out
    assert "2 wait for their next try, the next at 2126-08-25 03:00:00Z" in printed
    assert " left" not in printed
    assert "Errors so far" in printed
    assert printed.count("2126-08-25 03:00:00Z") == 3


async def test_accounts_come_in_pages(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    accounts = {f"account-{number:02}": ("failed", "TaxServiceDown") for number in range(7)}
    async with session_on(database_url) as session:
        occurrence, _ = await closed_night(session, accounts=dict(accounts))
        found: list[str] = []
        after = None
        while True:
            page = await list_accounts(session, occurrence.identity, ["failed"], after, 3)
            found += [one["account"] for one in page["page"]]
            print_accounts(page, Times())
            if (after := page["next_after"]) is None:
                break
    assert found == list(accounts)
    assert "there are more: --after 'account-02'" in capsys.readouterr().out


async def test_occurrences_are_listed_the_latest_first(database_url: str) -> None:
    async with session_on(database_url) as session:
        await closed_night(session)
        await closed_night(session, scheduled_at=DUE + DAY)
        await expected_occurrence(session, nightly(), DUE + 2 * DAY)
        listed = await list_occurrences(session, None, None, None, 10)
        assert [one["scheduled_at"] for one in listed] == [DUE + DAY, DUE]
        listed = await list_occurrences(session, "invoice-run", ["expected", "partial"], DUE + DAY, 10)
        assert [one["state"] for one in listed] == ["expected", "partial"]
        with pytest.raises(Refused, match="did you mean invoice-run"):
            await list_occurrences(session, "invoicerun", None, None, 10)


async def test_an_instant_that_is_not_planned_is_refused(database_url: str) -> None:
    async with session_on(database_url) as session:
        await closed_night(session)
        with pytest.raises(Refused, match="is not on the plan; nearest: 2026-08-25T02:00Z"):
            await show_occurrence(session, Identity("invoice-run", DUE + DAY))


async def test_status_names_live_processes_that_declare_a_job_otherwise(database_url: str) -> None:
    async with session_on(database_url) as session:
        for kind, cron in (("trigger", "0 2 * * *"), ("worker", "30 2 * * *")):
            definitions = fingerprints({"night": nightly("night", schedule=Cron(cron))})
            instance = Instance(f"{kind}-1", kind, "host", "0.1.0", "", "2026f")
            await register_instance(session, instance, {}, definitions=definitions)
        status = await read_status(session, settings_of())
    [problem] = status.problems
    assert problem.startswith("night: live processes hold 2 definitions since ")
    [difference] = status.differences
    assert [one["instances"] for one in difference["definitions"]] == [("trigger trigger-",), ("worker worker-1",)]
    orjson.dumps(status.differences)


async def test_status_says_what_is_not_well(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    async with session_on(database_url) as session:
        await closed_night(session, nightly("well-run"), {"a": ("succeeded", None)})
        assert (await read_status(session, settings_of())).problems == NOBODY
        await start_fleet(session)
        assert (await read_status(session, settings_of())).problems == []
        await closed_night(session)
        await expected_occurrence(session, nightly("late-run"))
        await running_occurrence(session, nightly("slow-run"), ["a", "b"])
        await session.execute("update matins.occurrence set finish_by = $1 where job = 'slow-run'", DUE)
        status = await read_status(session, settings_of())
        assert sorted(status.problems) == [
            "invoice-run:2026-08-25T02:00Z is partial: 4 of 5 accounts did not succeed",
            "late-run:2026-08-25T02:00Z is late: nobody has claimed it",
            "slow-run:2026-08-25T02:00Z is not finished in time",
        ]
        assert status.queues is None
        assert status.unseen == ["the queues were not seen: MATINS_BROKER_URL is not set"]
        print_status(status, Times("Asia/Tokyo"))
        printed = capsys.readouterr().out
        assert "not well: late-run:2026-08-25T02:00Z is late" in printed
        assert "cannot tell: the queues were not seen: MATINS_BROKER_URL is not set" in printed
        assert "all is well" not in printed
        await session.execute("update matins.job set paused_at = clock_timestamp() where name = 'late-run'")
        assert len((await read_status(session, settings_of())).problems) == 2


async def test_one_that_waits_says_for_which_and_is_not_late(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with session_on(database_url) as session:
        await start_fleet(session)
        running = await running_occurrence(session, nightly(), ["a"])
        waits = await expected_occurrence(session, nightly(), DUE + DAY)
        await session.execute("update matins.occurrence set waits_for = $1 where id = $2", running.id, waits)
        shown = await show_occurrence(session, Identity("invoice-run", DUE + DAY))
        assert shown["waits_for"] == str(running.identity)
        print_occurrence(shown, Times())
        assert f"waits for {running.identity}" in " ".join(capsys.readouterr().out.split())
        assert not any("is late" in one for one in (await read_status(session, settings_of())).problems)
        await session.execute("update matins.ledger set state = 'cancelled', finished_at = clock_timestamp()")
        await close(session, running.id, by="test")
        assert any("is late" in one for one in (await read_status(session, settings_of())).problems)
        assert (await show_occurrence(session, Identity("invoice-run", DUE + DAY)))["waits_for"] is None


async def test_a_bad_night_is_told_until_it_is_mended_or_too_old(database_url: str) -> None:
    last = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=23)
    nights = [last - number * DAY for number in range(9)]
    async with session_on(database_url) as session:
        await start_fleet(session)
        await closed_night(session, accounts={"a": ("succeeded", None)}, scheduled_at=nights[0])
        closed = [await closed_night(session, scheduled_at=night) for night in nights[1:]]
        status = await read_status(session, settings_of())
        assert [one["scheduled_at"] for one in status.unmended] == nights[1:7]
        assert len(status.problems) == 6
        assert (await read_status(session, settings_of(), 0)).problems == []
        assert len((await read_status(session, settings_of(), 30)).problems) == 8
        await rerun(session, closed[-1][0].identity, Choice(), ORDER)
        assert len((await read_status(session, settings_of(), 30)).problems) == 7
        for hour in range(1, 20):
            await closed_night(session, scheduled_at=nights[1] + timedelta(hours=hour))
        status = await read_status(session, settings_of(), 30)
        assert len(status.unmended) == 20
        assert status.problems[-1].startswith("and 6 more")


async def test_status_looks_into_the_queues_of_a_broker_that_answers(
    database_url: str, broker_url: str, prefix: str
) -> None:
    queues = frozenset({"invoice-run"})
    settings = settings_of(broker_url=broker_url, prefix=prefix, broker_timeout="5s")
    await migrate_broker(settings, topology_of(prefix, queues=queues), record=False)
    async with session_on(database_url) as session:
        await closed_night(session, accounts={"a": ("succeeded", None)})
        await start_fleet(session)
        status = await read_status(session, settings)
        assert status.well
        assert status.queues is not None
        assert {one["queue"]: one["messages"] for one in status.queues} == {
            f"{prefix}.work.invoice-run": 0,
            f"{prefix}.dead.parked": 0,
            f"{prefix}.dead.accounted": 0,
        }
        away = await read_status(session, settings_of(broker_url="amqp://guest:hidden@127.0.0.1:1/"))
        assert away.queues is None
        assert (away.well, away.problems, len(away.unseen)) == (False, [], 1)
        other = await read_status(session, settings_of(broker_url=broker_url, prefix="another"))
        assert other.problems[0].startswith("missing on the broker, run migrate: another.work.invoice-run")
        assert "hidden" not in str(away)


async def test_waiting_ends_with_the_occurrence_and_tells_on_the_way(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with session_on(database_url) as session:
        occurrence, _ = await closed_night(session)
        ended = await await_end(session, occurrence.id, "invoice-run")
        assert (ended.state, ended.total, ended.counts["failed"]) == ("partial", 5, 2)
    assert capsys.readouterr().err == ""


async def test_waiting_shows_a_line_where_no_bar_can_be_drawn(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with session_on(database_url) as session, session_on(database_url) as other:
        occurrence = await running_occurrence(session, nightly(), ["a", "b"])
        seen: list[str] = []

        async def finish() -> None:
            while "0 of 2 accounts, running; no worker is live" not in "".join(seen):
                await anyio.lowlevel.checkpoint()
                seen.append(capsys.readouterr().err)
            await other.execute(
                """update matins.occurrence set state = 'cancelled', reason = 'x', total = 0, succeeded = 0, failed = 0,
                          dead = 0, cancelled = 0, report = '{}', closed_at = clock_timestamp() where id = $1""",
                occurrence.id,
            )

        ended: list[Any] = []

        async def wait() -> None:
            ended.append(await await_end(session, occurrence.id, "invoice-run"))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(finish)
        assert ended[0].state == "cancelled"
