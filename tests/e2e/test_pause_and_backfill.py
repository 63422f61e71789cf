"""Pausing, retiring and running past instants as an operator does it: processes, exit codes, JSON, reasons."""

import pytest

from tests.e2e.test_command_line import Command, command, modules
from tests.integration.operate.night import closed_night, expected_occurrence, nightly
from tests.support.ledger import session_on

__all__ = ["command", "modules"]
ENVIRONMENT = "insert into matins.environment (name) values ('test')"
pytestmark = pytest.mark.timeout(240)


async def test_a_job_is_paused_resumed_retired_and_brought_back(command: Command, database_url: str) -> None:
    async with session_on(database_url) as session:
        await session.execute(ENVIRONMENT)
        await expected_occurrence(session, nightly())
    settings = {"environment": "test", "database_url": database_url}
    unreasoned = command("pause", "invoice-run", **settings)
    assert (unreasoned.code, "--reason" in unreasoned.err) == (2, True)
    held = command("pause", "invoice-run", "--meanwhile", "hold", "--reason", "down", "--actor", "ann", **settings)
    assert (held.code, held.out) == (
        0,
        "invoice-run is paused: what falls due waits; at `resume` the job's catch_up decides, as after a downtime\n",
    )
    again = command("pause", "invoice-run", "--meanwhile", "hold", "--reason", "down", **settings)
    assert again.code == 2
    assert "is paused already: since" in again.err
    fired = command("fire", "invoice-run", "--at", "2026-08-25T02:00Z", "--reason", "x", **settings)
    assert fired.code == 1
    assert "(down): `resume` it first" in fired.err
    shown = command("status", **settings)
    assert "by ann: down (hold)" in " ".join(shown.out.split())
    skips = command("pause", "invoice-run", "--reason", "skip it after all", "--json", **settings)
    assert (skips.json["standing"], skips.json["meanwhile"]) == ("paused", "skip")
    resumed = command("resume", "invoice-run", "--reason", "up", **settings)
    assert resumed.code == 0
    assert "instants that waited are recorded as skipped" in resumed.out
    retired = command("retire", "invoice-run", "--reason", "replaced", "--json", **settings)
    assert (retired.code, retired.json["standing"]) == (0, "retired")
    assert command("resume", "invoice-run", "--reason", "x", **settings).code == 2
    back = command("unretire", "invoice-run", "--reason", "not replaced", **settings)
    assert back.code == 0
    assert "invoice-run is no longer retired" in back.out
    unknown = command("pause", "invoice-rum", "--reason", "x", **settings)
    assert (unknown.code, "did you mean invoice-run" in unknown.err) == (2, True)


async def test_past_instants_are_run_and_called_off(command: Command, database_url: str) -> None:
    async with session_on(database_url) as session:
        await session.execute(ENVIRONMENT)
        await closed_night(session)
    settings = {"environment": "test", "database_url": database_url}
    week = ("backfill", "invoice-run", "--from", "2026-08-20T00:00Z", "--until", "2026-08-25T12:00Z", "--mode", "all")
    dry = command(*week, "--dry-run", **settings)
    assert dry.code == 0
    assert "2026-08-20T02:00Z" in dry.out
    assert "was never planned" in dry.out
    assert "partial: accounts failed" in dry.out
    assert "6 of 6 would run" in dry.out
    assert command(*week, **settings).code == 2, "it wants a reason"
    made = command(*week, "--reason", "the outage", "--max-active", "3", "--json", **settings)
    assert made.json["instants"][0]["scheduled_at"].endswith(":00:00Z"), "as every instant in JSON is written"
    (remark,) = made.json["remarks"]
    assert remark.startswith("--max-active 3 is without effect: with overlap=")
    assert (made.code, made.json["backfill"], made.json["started"]) == (0, 1, 6)
    assert {one["action"] for one in made.json["instants"]} == {"run", "run again"}
    second = command(*week, "--reason", "again", **settings)
    assert (second.code, "backfill 1 of invoice-run goes on" in second.err) == (2, True)
    (listed,) = command("backfills", "--json", **settings).json
    assert (listed["state"], listed["total"], listed["waiting"]) == ("active", 6, 6)
    assert command("cancel-backfill", "1", "--reason", "the wrong week", **settings).code == 0
    table = command("backfills", "invoice-run", **settings)
    assert "cancelled" in table.out
    ended = command("cancel-backfill", "1", "--reason", "x", **settings)
    assert (ended.code, "is cancelled since" in ended.err) == (2, True)


async def test_a_job_is_run_once_more(command: Command, database_url: str) -> None:
    async with session_on(database_url) as session:
        await session.execute(ENVIRONMENT)
        await closed_night(session)
    settings = {"environment": "test", "database_url": database_url}
    window = ("--since", "2026-08-01T00:00Z", "--until", "2026-08-02T00:00Z")
    fired = command(
        "fire", "invoice-run", "--ad-hoc", *window, "--reason", "auditors", "--json", "--no-wait", **settings
    )
    assert fired.code == 0
    assert fired.json["window"] == {"since": "2026-08-01T00:00:00Z", "until": "2026-08-02T00:00:00Z"}
    assert "origin" in command("show", fired.json["occurrence"], **settings).out
    busy = command("fire", "invoice-run", "--ad-hoc", "--reason", "auditors", **settings)
    assert (busy.code, "of the same job still runs" in busy.err) == (1, True)
    for words, told in (
        (("--ad-hoc", "--at", "2026-08-25T02:00Z"), "--at: names a planned instant"),
        (("--ad-hoc", "--deduplicate"), "--deduplicate: with --ad-hoc each call runs the job once more"),
        (window, "are an --ad-hoc occurrence's"),
    ):
        refused = command("fire", "invoice-run", *words, "--reason", "x", **settings)
        assert (refused.code, told in refused.err) == (2, True)
