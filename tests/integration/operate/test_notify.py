"""What an operator sees of the channels: in status, in doctor, in notify; and that notify --test tells how it went."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared.api_callers import read_key
from shared.channels import Webhook
from shared.settings import load_settings
from tests.architecture.sources import ROOT
from tests.integration.notify.support import NOW, TOLD, deliver, later, opened, to
from tests.support.ledger import database_on, session_on
from tests.support.outside import new_key
from tests.support.receivers import answering, http_receiver
from trigger.doctor_channels import check_channels
from trigger.notifications import channel_problems, undelivered
from trigger.status import read_status

# Each command is a process of its own, and a busy machine takes its time to start one.
pytestmark = pytest.mark.timeout(240)


async def test_what_waits_and_what_was_given_up_is_a_problem(database_url: str) -> None:
    async with session_on(database_url) as session, database_on(database_url) as database:
        settings = load_settings({"MATINS_DATABASE_URL": database_url}, need=frozenset({"database_url"}))
        assert [one.found async for one in check_channels(session)] == ["none was used yet"]
        with http_receiver() as receiver:
            receiver.answer = answering(500)
            channel = to(Webhook(receiver.url(), (read_key(new_key()),)), "team")
            await opened(session)
            await deliver(database, channel)
            assert await channel_problems(session, now=later(minutes=1)) == []
            waits = "channel team: 1 messages wait since 2026-08-25T02:15Z: answered 500: ok"
            assert await channel_problems(session, now=later(minutes=3)) == [waits]
            await deliver(database, channel, later(hours=25))
        why = "it waited for longer than the channel gives; the last attempt: answered 500: ok"
        lost = f"channel team: 1 messages were given up: {why}"
        assert await channel_problems(session, now=later(hours=26)) == [lost]
        await session.execute("update matins.delivery set ended_at = clock_timestamp()")
        assert lost in (await read_status(session, settings)).problems
        assert [one.level async for one in check_channels(session)] == ["fail"]
        (one,) = await undelivered(session)
        assert (one["channel"], one["kind"], one["state"], one["attempts"]) == ("team", "not_claimed", "given_up", 2)


def notify(environment: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    """Run the command as a process of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MATINS_")}
    done = subprocess.run(
        [sys.executable, "-m", "trigger", "notify", *arguments],
        cwd=ROOT,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_test_message_tells_by_channel_how_it_went(tmp_path: Path) -> None:
    key = new_key()
    with http_receiver() as works, http_receiver() as broken:
        broken.answer = answering(404, body=b"no such hook")
        (tmp_path / "channels.toml").write_text(
            f"""
            [channels.own]
            kind = "webhook"
            url = "{works.url("/own")}"
            keys = ["{key}"]
            [channels.team]
            kind = "slack"
            url = "{broken.url("/services/secret-part-of-it")}"
            [channels.lines]
            kind = "log"
            """,
            encoding="utf-8",
        )
        setting = {"MATINS_ENVIRONMENT": "testing", "MATINS_CHANNELS_FILE": str(tmp_path / "channels.toml")}
        code, out, _ = notify(setting, "--test", "--json")
        told: list[dict[str, Any]] = json.loads(out)
        assert code == 1
        assert [(one["channel"], one["delivered"], one["error"]) for one in told] == [
            ("own", True, None),
            ("team", False, "answered 404: no such hook"),
            ("lines", True, None),
        ]
        assert works.requests[0].json["type"] == "alert.test"
        code, out, err = notify(setting, "--test", "--channel", "own")
        assert (code, "delivered" in out) == (0, True)
        code, out, err = notify(setting, "--test", "--channel", "nobody")
        assert (code, "own, team, lines" in err) == (2, True)
        assert "secret-part-of-it" not in out + err
        assert len(broken.requests) == 1


async def test_the_command_lists_channels_and_what_they_owe(database_url: str) -> None:
    async with session_on(database_url) as session, database_on(database_url) as database:
        await session.execute("insert into matins.environment (name) values ('testing')")
        with http_receiver() as receiver:
            receiver.answer = answering(500)
            await opened(session)
            await deliver(database, to(Webhook(receiver.url(), (read_key(new_key()),)), "team"))
            await session.execute("update matins.delivery set created_at = clock_timestamp() - interval '1 hour'")
    setting = {"MATINS_ENVIRONMENT": "testing", "MATINS_DATABASE_URL": database_url}
    code, out, err = notify(setting, "--json")
    assert err == ""
    told = json.loads(out)
    assert code == 1
    assert [(one["channel"], one["kind"], one["waiting"]) for one in told["channels"]] == [
        ("log", "log", None),
        ("team", None, 1),
    ]
    assert told["undelivered"][0]["subject"] == "invoice-run:2026-08-25T02:00Z"
    code, out, _ = notify(setting)
    assert "answered 500" in out
    assert TOLD not in out
    assert str(NOW.year) in out
