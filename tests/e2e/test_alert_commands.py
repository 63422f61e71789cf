"""The commands about alerts as an operator uses them: processes, exit codes, JSON on standard output."""

import pytest

from shared.fleet import Instance, register_instance
from tests.e2e.test_command_line import Command, command, modules
from tests.integration.operate.night import closed_night, nightly
from tests.support.alerts import open_alert
from tests.support.ledger import session_on

__all__ = ["command", "modules"]

pytestmark = pytest.mark.timeout(240)
ENVIRONMENT = "insert into matins.environment (name) values ('test')"
NIGHT = "invoice-run:2026-08-25T02:00Z"


async def test_a_bad_night_that_is_acknowledged_leaves_status_well(command: Command, database_url: str) -> None:
    settings = {"environment": "test", "database_url": database_url}
    async with session_on(database_url) as session:
        await session.execute(ENVIRONMENT)
        occurrence, _ = await closed_night(session)
        for kind in ("trigger", "worker"):
            await register_instance(session, Instance(f"{kind}-1", kind, "host", "0.1.0", "", "2026f"), {})
        number = await open_alert(
            session, "partial", NIGHT, occurrence_id=occurrence.id, told="4 of 5 accounts did not succeed"
        )
    before = command("status", "--json", **settings)
    assert (before.code, before.json["well"]) == (1, False)
    (problem,) = before.json["problems"]
    assert problem == f"{NIGHT} is partial: 4 of 5 accounts did not succeed (alert {number})"
    assert [one["name"] for one in before.json["alerts"]] == [f"partial:{NIGHT}"]
    assert command("show", NIGHT, "--json", **settings).json["alerts"][0]["alert"] == number
    assert "Open alerts" in command("show", NIGHT, **settings).out
    listed = command("jobs", "--json", jobs="sound_jobs", **settings)
    assert (listed.code, listed.json["jobs"][0]["alerts"]) == (0, [f"partial:{NIGHT}"])
    known = command("acknowledge", str(number), "--reason", "run again at noon", "--actor", "ann", **settings)
    assert (known.code, known.err) == (0, "")
    assert known.out.startswith(f"partial:{NIGHT} is acknowledged: it is not told again, and closes at the watch's")
    after = command("status", **settings)
    assert "not well" not in after.out
    assert "acknowledged" in after.out
    assert "by ann: run again at noon" in after.out
    assert "cannot tell: the queues were not seen" in after.out


async def test_each_is_acted_on_by_itself_and_what_is_refused_is_told(command: Command, database_url: str) -> None:
    settings = {"environment": "test", "database_url": database_url}
    async with session_on(database_url) as session:
        await session.execute(ENVIRONMENT)
        await closed_night(session, nightly())
        number = await open_alert(session, "not_claimed", NIGHT)
        other = await open_alert(session, "clock_skew", "worker-1", job=None)
    done = command(
        "silence",
        "4711",
        f"not_claimed:{NIGHT}",
        "--for",
        "8h",
        "--reason",
        "at noon",
        "--json",
        **settings,
    )
    assert done.code == 2
    assert done.json["refused"] == ["there is no alert 4711; `alerts --all` lists them"]
    (silenced,) = done.json["alerts"]
    assert (silenced["alert"], silenced["changed"]) == (number, True)
    assert silenced["silenced_until"] == silenced["next_notice_at"]
    for words, told in (
        (("silence", "7", "--reason", "why"), "say when it ends"),
        (("silence", "7", "--for", "8", "--reason", "why"), "write minutes, hours or days"),
        (("acknowledge", "seven", "--reason", "why"), "names no alert: write its number"),
        (("acknowledge", str(number), "--reason", " "), "--reason: say in 1 to 500 characters why"),
        (("acknowledge", str(number)), "Missing option '--reason'"),
        (("alert", "4711"), "there is no alert 4711"),
        (("alerts", "--kind", "fail"), "the kinds are not_claimed"),
    ):
        refused = command(*words, **settings)
        assert refused.code == 2, words
        assert told in refused.err, words
    heard = command("unsilence", str(number), "--reason", "it is needed", **settings)
    assert "it is told again" in heard.out
    listed = command("alerts", "--json", **settings).json
    assert (listed["found"], [one["alert"] for one in listed["alerts"]]) == (2, [number, other])
    few = command("alerts", "--limit", "1", **settings)
    assert "1 of 2 are shown: --limit" in few.err
    shown = command("alert", f"not_claimed:{NIGHT}", "--json", **settings).json
    assert [one["kind"] for one in shown["events"]] == ["silence", "unsilence"]


async def test_maintenance_is_planned_listed_and_ended(command: Command, database_url: str) -> None:
    settings = {"environment": "test", "database_url": database_url}
    async with session_on(database_url) as session:
        await session.execute(ENVIRONMENT)
        await closed_night(session)
        await open_alert(session, "not_claimed", NIGHT)
    added = command("maintenance", "add", "invoice-run", "--for", "2h", "--reason", "it moves", "--json", **settings)
    assert (added.code, added.json["job"], added.json["added"]) == (0, "invoice-run", True)
    (listed,) = command("maintenance", "list", "--json", **settings).json
    assert (listed["id"], listed["state"], listed["reason"]) == (added.json["id"], "in force", "it moves")
    status = command("status", "--json", "--days", "0", **settings).json
    assert [one["id"] for one in status["maintenance"]] == [listed["id"]]
    assert [one["standing"] for one in status["alerts"]] == ["maintenance"]
    assert not any("not_claimed" in one for one in status["problems"])
    assert "in planned maintenance until" in command("alerts", **settings).out
    ended = command("maintenance", "end", str(listed["id"]), "--reason", "it went faster", **settings)
    assert ended.out == f"maintenance {listed['id']} of invoice-run is over: alerts are told again\n"
    for words, told in (
        (("add", "--for", "2h", "--reason", "why"), "give a JOB, or --all for all of them"),
        (("add", "invoice-run", "--all", "--for", "2h", "--reason", "why"), "not both"),
        (("add", "invoice-rum", "--for", "2h", "--reason", "why"), "did you mean invoice-run"),
        (("end", "4711", "--reason", "why"), "there is no maintenance 4711"),
    ):
        refused = command("maintenance", *words, **settings)
        assert (refused.code, told in refused.err) == (2, True), words


def test_jobs_says_when_open_alerts_could_not_be_seen(command: Command) -> None:
    listed = command("jobs", "--json", jobs="sound_jobs", database_url="postgresql://nobody:secret@127.0.0.1:1/none")
    assert (listed.code, listed.json["jobs"][0]["alerts"]) == (0, None)
    assert "open alerts were not seen" in listed.err
    assert "secret" not in listed.err
    assert command("jobs", jobs="sound_jobs").err == ""


def test_help_of_the_group_lists_its_commands(command: Command) -> None:
    shown = command("maintenance", "--help")
    assert shown.code == 0
    assert all(name in shown.out for name in ("add", "list", "end", "told to nobody before it is over"))
    assert "python -m trigger maintenance add --all --since" in command("maintenance", "add", "--help").out
