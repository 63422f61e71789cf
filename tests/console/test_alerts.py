"""The pages of alerts say what `alerts` and `alert` say, and what the runbook advises, of the alert's own subject."""

import shlex
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import typer.main
from justhtml import JustHTML

import trigger.command
from schemas.alert import KINDS
from shared.masking import plain
from shared.postgres import Session, database_now
from tests.console.night import HOSTILE
from tests.console.reading import shown
from tests.console.serving import serving
from tests.support.alerts import open_alert
from tests.support.ledger import session_on
from trigger.alert_standing import read_reference
from trigger.alerts import list_alerts, show_alert
from trigger.console import runbook
from trigger.console.alerts import ALERTS_A_PAGE

OCCURRENCE = "night-run:2026-11-29T01:30Z"
SUBJECTS = {"occurrence": OCCURRENCE, "job": "night-run", "instance": "1" * 32}
COMMANDS = typer.main.get_group(trigger.command.application).commands


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    async with session_on(database_url) as opened:
        await opened.execute(
            """insert into matins.job (name, revision, definition, fingerprint, known_since, planned_through)
               select name, 1, '{}', '', now(), now() from unnest(array['night-run', 'other']) as name"""
        )
        yield opened


async def many_alerts(session: Session) -> None:
    now = await database_now(session)
    for place, kind in enumerate(KINDS):
        subject = SUBJECTS[KINDS[kind].subject]
        await open_alert(session, kind, subject, opened_at=now - timedelta(minutes=7 * (place % 4)))
        await open_alert(
            session, kind, subject.replace("night-run", "other") + "0", job="other", told=HOSTILE[place % 8]
        )
    for place in range(2 * ALERTS_A_PAGE):
        closed = {"closed_at": now - timedelta(hours=place), "close_reason": HOSTILE[place % 8], "next_notice_at": None}
        await open_alert(session, "partial", f"night-run:x{place}", opened_at=now - timedelta(days=9), **closed)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("", {}),
        ("?show=all", {"closed_too": True}),
        ("?show=all&page=2", {"closed_too": True, "behind": ALERTS_A_PAGE}),
        ("?show=all&page=3", {"closed_too": True, "behind": 2 * ALERTS_A_PAGE}),
        ("?job=other", {"job": "other"}),
        ("?kind=partial&show=all&job=night-run", {"closed_too": True, "job": "night-run", "kinds": ("partial",)}),
    ],
)
async def test_the_list_is_that_of_the_command(
    database_url: str, session: Session, query: str, asked: dict[str, Any]
) -> None:
    await many_alerts(session)
    async with serving(database_url) as console:
        page = await console.get(f"/alerts{query}")
    expected, found = await list_alerts(session, limit=ALERTS_A_PAGE, **asked)
    main = shown(page.text)
    rows = main.table("listed")
    assert [row[0] for row in rows] == [f"{one['name']} {one['severity']}" for one in expected]
    assert [row[1] for row in rows] == [" ".join(plain(one["told"], 240).split()) for one in expected]
    assert [row[4] for row in rows] == [" ".join(plain(one["told_standing"], 240).split()) for one in expected]
    links = [link for link in main.links().values() if link.startswith("/alerts/")]
    assert links == [f"/alerts/{one['alert']}" for one in expected]
    assert main.heading == f"Alerts {found}"
    assert "<script>document" not in page.text


async def test_pages_lead_to_one_another_and_keep_what_was_asked_for(database_url: str, session: Session) -> None:
    await many_alerts(session)
    async with serving(database_url) as console:
        first = await console.get("/alerts?show=all&kind=partial")
        following = shown(first.text).links()["Next"]
        assert following == "/alerts?job=&kind=partial&show=all&page=2"
        second = shown((await console.get(following)).text)
        assert second.links()["Before"] == "/alerts?job=&kind=partial&show=all&page=1"
        beyond = await console.get("/alerts?page=900")
    assert beyond.status == 200
    assert "There is no page 900." in shown(beyond.text).text


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/alerts?kind=broken", 400, "kind: 'broken' is unknown; valid are not_claimed, not_finished"),
        ("/alerts?job=night-rum", 400, "job: there is no job 'night-rum'; did you mean night-run?"),
        ("/alerts?show=some", 400, "show: 'some' is unknown; valid are open, all"),
        ("/alerts?page=-1", 400, "page: '-1' is not a page"),
        ("/alerts/4711", 404, "there is no alert 4711"),
        ("/alerts/partial:nothing", 404, "there was never an alert partial:nothing"),
        ("/alerts/%3Cscript%3E", 404, "names no alert: write its number"),
        ("/alerts/99999999999999999999", 404, "names no alert"),
    ],
)
async def test_what_there_is_not_is_said_with_what_is_valid(
    database_url: str, session: Session, path: str, status: int, told: str
) -> None:
    async with serving(database_url) as console:
        page = await console.get(path)
    assert page.status == status
    assert told in shown(page.text).text
    assert "<script>" not in page.text


async def told_alert(session: Session) -> int:
    """Open an alert that was told three times, through a channel that takes it and one that does not."""
    now = await database_now(session)
    number = await open_alert(
        session,
        "not_finished",
        OCCURRENCE,
        detail={"done": 40, "nested": {"b": HOSTILE[0]}, HOSTILE[1]: HOSTILE[3], "since": None, "late": True},
        silenced_until=now + timedelta(hours=2),
        silenced_by=HOSTILE[0],
        silence_reason=HOSTILE[4],
        notices=3,
    )
    await session.execute("insert into matins.channel values ('team', now(), null), ('pager', now(), null)")
    for event in ("opened", "repeated"):
        notice = await session.fetchval(
            "insert into matins.notification (alert_id, event, body) values ($1, $2, '{}') returning id", number, event
        )
        for channel, state, error in (("team", "delivered", None), ("pager", "given_up", HOSTILE[1])):
            await session.execute(
                """insert into matins.delivery (channel, thread, place, notification_id, event, state, created_at,
                       not_before, attempts, ended_at, error)
                   values ($1, 't', $2, $2, $3, $4, now(), now(), 7, now(), $5)""",
                channel,
                notice,
                event,
                state,
                error,
            )
    await session.execute(
        "insert into matins.notification (alert_id, event, body) values ($1, 'repeated', '{}')", number
    )
    await session.execute(
        """insert into matins.audit (kind, instance, actor, actor_kind, reason, detail)
           values ('alert_opened', 'watcher-one', null, null, null, $1),
                  ('silence', 'other', $2, 'operator', $3, $1)""",
        {"alert": number},
        HOSTILE[0],
        HOSTILE[7],
    )
    return number


async def test_one_alert_shows_what_the_command_shows(database_url: str, session: Session) -> None:
    number = await told_alert(session)
    async with serving(database_url) as console:
        page = await console.get(f"/alerts/{number}")
        by_name = await console.get(f"/alerts/not_finished:{OCCURRENCE}")
    alert = await show_alert(session, read_reference(str(number)))
    main = shown(page.text)
    assert shown(by_name.text).heading == main.heading == alert["name"]
    told = main.table("notices")
    expected = [(one["event"], one["channel"] or "none yet") for one in alert["history"]]
    assert [(row[1], row[2]) for row in told] == expected
    assert [row[4] for row in told] == ["7", "7", "7", "7", "-"]
    assert [row[3].split()[0] for row in told] == ["given", "delivered", "given", "delivered", "-"]
    assert told[0][5] == HOSTILE[1]
    events = main.table("events")
    assert [row[1:3] for row in events] == [["alert opened", "watcher-"], ["silence", HOSTILE[0]]]
    assert events[1][3].endswith("[cut from 3000 characters]")
    facts = main.facts()
    assert (facts["Occurrence"], facts["Job"], facts["done"], facts["late"]) == (OCCURRENCE, "night-run", "40", "yes")
    assert HOSTILE[0] in facts["nested"]
    assert "\\u202eright to left" in facts[HOSTILE[1]]
    assert facts["How it stands"].startswith("silenced until ")
    assert f"python -m trigger show {OCCURRENCE}" in main.text
    assert main.links()[OCCURRENCE] == f"/occurrences/{OCCURRENCE}"
    assert "owned" not in "".join(one.to_html() for one in JustHTML(page.text, sanitize=False).query("script"))


async def test_an_alert_that_nobody_was_told_of_says_so(database_url: str, session: Session) -> None:
    number = await open_alert(session, "clock_skew", "1" * 32, job=None, notices=0)
    async with serving(database_url) as console:
        main = shown((await console.get(f"/alerts/{number}")).text)
    assert "Nobody was told of it yet." in main.text
    assert "nobody has acknowledged or silenced it" in main.text
    assert main.facts()["Told"].startswith("not yet")
    assert "Occurrence" not in main.facts()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_runbook_s_entry_is_about_this_alert(database_url: str, session: Session, kind: str) -> None:
    number = await open_alert(session, kind, SUBJECTS[KINDS[kind].subject], job="night-run")
    async with serving(database_url) as console:
        html = (await console.get(f"/alerts/{number}")).text
    facts = shown(html).facts()
    assert all(facts[label] for label in ("Symptom", "Look", "Do", "Costs", "Wake"))
    lines = [line for one in JustHTML(html).query("pre.command") for line in one.to_text("", strip=False).splitlines()]
    assert len(lines) > 1
    for line in lines:
        words = shlex.split(line)
        assert words[:3] == ["python", "-m", "trigger"], line
        COMMANDS[words[3]].make_context(words[3], words[4:], resilient_parsing=False)
        assert "invoice-run" not in line
        assert "2026-08-25" not in line


async def test_without_the_runbook_its_place_is_named(
    database_url: str, session: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runbook, "PATH", tmp_path / "runbook.md")
    runbook.entries.cache_clear()
    number = await open_alert(session, "failed", OCCURRENCE)
    try:
        async with serving(database_url) as console:
            main = shown((await console.get(f"/alerts/{number}")).text)
    finally:
        runbook.entries.cache_clear()
    assert "docs/runbook.md#failed says more of this kind." in main.text
    assert "Symptom" not in main.facts()


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("", "No alert is open."),
        ("?show=all", "No alert was ever opened."),
        ("?kind=failed", "No such alert is open."),
        ("?kind=failed&show=all", "No such alert was ever opened."),
    ],
)
async def test_an_empty_list_says_what_would_be_there(
    database_url: str, session: Session, query: str, told: str
) -> None:
    async with serving(database_url) as console:
        assert told in shown((await console.get(f"/alerts{query}")).text).text
