"""Acknowledging and silencing: what is recorded, what is refused, and who comes first."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import anyio
import orjson
import pytest

from schemas.occurrence import Identity
from shared.postgres import Session, transaction
from shared.terminal import Refused
from shared.terminal_tables import Times
from tests.integration.operate.night import ORDER, OTHER, closed_night, nightly
from tests.support.alerts import acts, close_alert, open_alert
from tests.support.ledger import DUE, session_on
from trigger.alert_orders import LONGEST_SILENCE, Acted, acknowledge, silence, unsilence
from trigger.alert_standing import Reference, read_reference
from trigger.alerts import list_alerts, open_alerts_of, show_alert
from trigger.commands_print_alerts import print_alert, print_alerts
from trigger.maintenance import add_maintenance

HOUR = timedelta(hours=1)
NAME = "not_claimed:invoice-run:2026-08-25T02:00Z"
SUBJECT = "invoice-run:2026-08-25T02:00Z"

Act = Callable[[Session, Reference], Awaitable[Acted]]


async def row_of(session: Session, number: int) -> Any:
    return await session.fetchrow("select * from matins.alert where id = $1", number)


async def test_acknowledged_it_has_no_next_notice_and_says_who(database_url: str) -> None:
    async with session_on(database_url) as session:
        number = await open_alert(session, "not_claimed", SUBJECT)
        done = await acknowledge(session, read_reference(NAME), ORDER, now=DUE)
        assert (done.alert, done.changed) == (number, True)
        assert done.said == f"{NAME} is acknowledged: it is not told again, and closes once it is over"
        row = await row_of(session, number)
        assert (row["acknowledged_at"], row["acknowledged_by"], row["acknowledge_reason"]) == (DUE, "ann", ORDER.reason)
        assert (row["next_notice_at"], row["closed_at"]) == (None, None)
        ((kind, actor, reason, detail),) = await acts(session)
        assert (kind, actor, reason) == ("acknowledge", "ann", ORDER.reason)
        assert detail == {
            "alert": number,
            "kind": "not_claimed",
            "subject": SUBJECT,
            "before": {"next_notice_at": "2126-08-25T06:00:00+00:00"},
            "after": {
                "acknowledged_at": "2026-08-25T02:00:00+00:00",
                "acknowledged_by": "ann",
                "acknowledge_reason": ORDER.reason,
            },
        }


async def test_once_more_changes_nothing_also_when_it_is_over(database_url: str) -> None:
    async with session_on(database_url) as session:
        number = await open_alert(session, "failed", SUBJECT)
        assert "closes at the watch's next look" in (await acknowledge(session, Reference(number), ORDER)).said
        again = await acknowledge(session, Reference(number), OTHER)
        assert (again.changed, again.standing.acknowledged_by) == (False, "ann")
        assert "by ann: the tax service is back already" in again.said
        await close_alert(session, number)
        assert not (await acknowledge(session, Reference(number), OTHER)).changed
        assert len(await acts(session)) == 1


async def test_a_silence_ends_and_another_takes_its_place(database_url: str) -> None:
    async with session_on(database_url) as session:
        number = await open_alert(session, "no_progress", SUBJECT)
        reference = Reference(number)
        done = await silence(session, reference, 2 * HOUR, ORDER, now=DUE)
        assert done.said.endswith("is silenced until 2026-08-25T04:00Z, and then told again if it is not over")
        same = await silence(session, reference, DUE + 2 * HOUR, OTHER, now=DUE + HOUR)
        assert not same.changed
        longer = await silence(session, reference, HOUR, OTHER, now=DUE + 2 * HOUR)
        assert (longer.standing.silenced_until, longer.standing.silenced_by) == (DUE + 3 * HOUR, "bob")
        row = await row_of(session, number)
        assert row["next_notice_at"] == row["silenced_until"] == DUE + 3 * HOUR
        heard = await unsilence(session, reference, ORDER, now=DUE + 2 * HOUR)
        assert heard.said.endswith("is no longer silenced: it is told again")
        row = await row_of(session, number)
        assert (row["silenced_until"], row["silenced_by"], row["next_notice_at"]) == (None, None, DUE + 2 * HOUR)
        assert not (await unsilence(session, reference, ORDER, now=DUE + 2 * HOUR)).changed
        kinds = [kind for kind, *_ in await acts(session)]
        assert kinds == ["silence", "silence", "unsilence"]
        assert (await acts(session))[1][3]["before"]["silenced_by"] == "ann"


async def test_a_silenced_one_can_be_acknowledged_and_then_heard_of_no_more(database_url: str) -> None:
    async with session_on(database_url) as session:
        reference = Reference(await open_alert(session, "no_progress", SUBJECT))
        await silence(session, reference, HOUR, ORDER)
        assert (await acknowledge(session, reference, OTHER)).changed
        heard = await unsilence(session, reference, ORDER)
        assert heard.said.endswith("it is acknowledged, so it is not told again")
        assert heard.standing.next_notice_at is None
        with pytest.raises(Refused, match=r"is acknowledged .* by bob: I was faster: it is not told again anyway"):
            await silence(session, reference, HOUR, ORDER)


@pytest.mark.parametrize(
    ("until", "told"),
    [
        (DUE - HOUR, "a silence ends later than it begins: 2026-08-25T01:00Z is not after 2026-08-25T02:00Z"),
        (DUE + LONGEST_SILENCE + HOUR, "a silence lasts 7 days at most"),
        (LONGEST_SILENCE + HOUR, "a silence lasts 7 days at most"),
    ],
)
async def test_a_silence_without_an_end_is_refused(database_url: str, until: Any, told: str) -> None:
    async with session_on(database_url) as session:
        number = await open_alert(session, "no_progress", SUBJECT)
        with pytest.raises(Refused, match=told):
            await silence(session, Reference(number), until, ORDER, now=DUE)
        assert (await row_of(session, number))["silenced_until"] is None
        assert await acts(session) == []


async def say_known(session: Session, reference: Reference) -> Acted:
    return await acknowledge(session, reference, ORDER)


async def say_nothing(session: Session, reference: Reference) -> Acted:
    return await silence(session, reference, HOUR, ORDER)


async def say_again(session: Session, reference: Reference) -> Acted:
    return await unsilence(session, reference, ORDER)


@pytest.mark.parametrize("act", [say_known, say_nothing, say_again])
async def test_one_that_is_unknown_or_over_is_refused(database_url: str, act: Act) -> None:
    async with session_on(database_url) as session:
        with pytest.raises(Refused, match="there is no alert 7; `alerts --all` lists them"):
            await act(session, Reference(7))
        with pytest.raises(Refused, match=f"there was never an alert {NAME}"):
            await act(session, read_reference(NAME))
        number = await open_alert(session, "not_claimed", SUBJECT)
        await close_alert(session, number)
        for reference in (Reference(number), read_reference(NAME)):
            with pytest.raises(Refused, match=f"{NAME} is over since .*: it is over"):
                await act(session, reference)
        assert await acts(session) == []


@pytest.mark.parametrize("act", [say_known, say_nothing])
async def test_whoever_closes_it_first_has_the_other_told(database_url: str, act: Act) -> None:
    async with session_on(database_url) as watch, session_on(database_url) as operator:
        number = await open_alert(watch, "not_claimed", SUBJECT)
        refused: list[str] = []

        async def order() -> None:
            with pytest.raises(Refused) as told:
                await act(operator, Reference(number))
            refused.append(str(told.value))

        async with anyio.create_task_group() as group, transaction(watch):
            await close_alert(watch, number)
            group.start_soon(order)
            await waits(database_url)
        assert "is over since" in refused[0]
        row = await row_of(watch, number)
        assert (row["acknowledged_at"], row["silenced_until"], await acts(watch)) == (None, None, [])


async def test_whoever_acknowledges_first_has_it_closed_with_their_name(database_url: str) -> None:
    async with session_on(database_url) as watch, session_on(database_url) as operator:
        number = await open_alert(watch, "not_claimed", SUBJECT)
        async with anyio.create_task_group() as group, transaction(operator):
            await acknowledge(operator, Reference(number), ORDER)
            group.start_soon(close_alert, watch, number)
            await waits(database_url)
        row = await row_of(watch, number)
        assert row["closed_at"] > row["acknowledged_at"]
        assert (row["acknowledged_by"], row["close_reason"]) == ("ann", "it is over")


async def test_of_two_operators_one_acknowledges_and_the_other_is_told_who(database_url: str) -> None:
    async with session_on(database_url) as first, session_on(database_url) as second:
        number = await open_alert(first, "not_claimed", SUBJECT)
        done: list[Acted] = []

        async def other() -> None:
            done.append(await acknowledge(second, Reference(number), OTHER))

        async with anyio.create_task_group() as group, transaction(first):
            await acknowledge(first, Reference(number), ORDER)
            group.start_soon(other)
            await waits(database_url)
        assert (done[0].changed, done[0].standing.acknowledged_by) == (False, "ann")
        assert len(await acts(first)) == 1


async def waits(database_url: str) -> None:
    """Wait until somebody waits for a lock in this database."""
    async with session_on(database_url) as looking:
        while not await looking.fetchval(
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        ):
            await anyio.lowlevel.checkpoint()


async def test_the_open_ones_come_first_and_of_those_the_worst_and_oldest(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with session_on(database_url) as session:
        await closed_night(session)
        names = {
            await open_alert(session, kind, subject, opened_at=DUE + hours * HOUR): subject
            for kind, subject, hours in (
                ("partial", "invoice-run:1", 0),
                ("failed", "invoice-run:2", 3),
                ("failed", "invoice-run:3", 2),
                ("clock_skew", "worker-1", 1),
                ("missed", "invoice-run:4", 1),
            )
        }
        await close_alert(session, next(number for number, name in names.items() if name == "invoice-run:4"))
        found, count = await list_alerts(session, closed_too=True)
        assert [one["subject"] for one in found] == [
            "invoice-run:3",
            "invoice-run:2",
            "invoice-run:1",
            "worker-1",
            "invoice-run:4",
        ]
        assert count == 5
        orjson.dumps(found)
        assert [one["subject"] for one in (await list_alerts(session))[0]][-1] == "worker-1"
        chosen, count = await list_alerts(session, job="invoice-run", kinds=["failed"], since=DUE + 2 * HOUR, limit=1)
        assert ([one["subject"] for one in chosen], count) == (["invoice-run:3"], 2)
        assert (await list_alerts(session, since=DUE + 3 * HOUR))[1] == 1
        print_alerts(found, Times("Europe/Berlin"))
        printed = capsys.readouterr().out
        assert "2026-08-25 04:00:00Z (06:00:00 CEST)" in printed
        assert "over since" in printed
        for wrong in ({"job": "invoicerun"}, {"kinds": ["fail"]}):
            with pytest.raises(Refused, match=r"did you mean invoice-run|the kinds are not_claimed"):
                await list_alerts(session, **wrong)


async def test_one_shows_what_to_do_and_all_that_became_of_it(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with session_on(database_url) as session:
        occurrence, _ = await closed_night(session)
        number = await open_alert(
            session,
            "partial",
            SUBJECT,
            occurrence_id=occurrence.id,
            detail={"failed": 2, "total": 5},
            told="2 of 5 accounts did not succeed",
        )
        await session.execute(
            "insert into matins.notification (alert_id, event, body) select $1, event, '{}' "
            "from unnest(array['opened', 'repeated']) as given (event)",
            number,
        )
        await silence(session, Reference(number), HOUR, ORDER)
        await acknowledge(session, Reference(number), OTHER)
        shown = await show_alert(session, read_reference(f"partial:{SUBJECT}"))
        assert [one["event"] for one in shown["history"]] == ["opened", "repeated"]
        assert [(one["kind"], one["actor"]) for one in shown["events"]] == [("silence", "ann"), ("acknowledge", "bob")]
        assert (shown["runbook"], shown["more"]) == ("docs/runbook.md#partial", f"python -m trigger show {SUBJECT}")
        orjson.dumps(shown)
        assert [one["alert"] for one in await open_alerts_of(session, occurrence.id)] == [number]
        assert Identity("invoice-run", DUE) == occurrence.identity
    print_alert(shown, Times())
    printed = capsys.readouterr().out
    for part in (
        f"partial:{SUBJECT}: warning, alert {number}",
        "2 of 5 accounts did not succeed",
        "Read its report with `show`, mend the cause, `rerun` it.",
        f"python -m trigger show {SUBJECT}",
        "docs/runbook.md#partial",
        "by bob: I was faster",
        "repeated",
    ):
        assert part in printed


async def test_one_that_ended_is_found_by_its_name_unless_another_is_open(database_url: str) -> None:
    async with session_on(database_url) as session:
        first = await open_alert(session, "not_claimed", SUBJECT)
        await close_alert(session, first)
        assert (await show_alert(session, read_reference(NAME)))["alert"] == first
        second = await open_alert(session, "not_claimed", SUBJECT)
        assert (await show_alert(session, read_reference(NAME)))["alert"] == second


async def test_an_alert_of_planned_maintenance_says_until_when(database_url: str) -> None:
    async with session_on(database_url) as session:
        await closed_night(session, nightly())
        number = await open_alert(session, "not_claimed", SUBJECT)
        elsewhere = await open_alert(session, "not_claimed", "other:2026-08-25T02:00Z")
        planned = await add_maintenance(session, "invoice-run", None, HOUR, ORDER)
        shown = {one["alert"]: one for one in (await list_alerts(session))[0]}
        assert (shown[number]["standing"], shown[number]["maintained_until"]) == ("maintenance", planned.until)
        assert shown[elsewhere]["standing"] == "told"
