"""The command lines as an operator uses them: processes, exit codes, JSON on standard output, reasons on the other."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shared.fleet import Instance, register_instance
from shared.role_names import GROUPS
from tests.architecture.sources import ROOT
from tests.integration.operate.night import closed_night, expected_occurrence, nightly
from tests.support.ledger import ledger, occurrence_row, session_on
from tests.support.logins import PASSWORD, with_login
from tests.support.servers import execute, unique_name, with_path

SOUND = """
from shared.job import AccountCall, Cron, Decisions, Job, NothingToDo, PerAccount, SqlAccounts, hours, minutes

NIGHTLY = Decisions(
    catch_up="latest", catch_up_within=hours(20), overlap="skip", start_within=minutes(10), finish_within=hours(3)
)

async def invoice(call: AccountCall) -> None:
    print("this is for a person")
    if await call.connection.fetchval("select 1 where $1 = 'broken'", call.account):
        raise ValueError("no address")

jobs = [
    Job("invoice-run", schedule=Cron("0 2 * * *"), decisions=NIGHTLY, accounts=SqlAccounts("select '1' as account"),
        handler=PerAccount(invoice)),
]
"""
FAULTY = """
from shared.job import Cron, Job, PerAccount, SqlAccounts

async def work(call):
    pass

jobs = [
    Job("first", schedule=Cron("0 2 * *"), accounts=SqlAccounts("select 1;"), handler=PerAccount(work, timeout=5)),
    Job("second", schedule=Cron("0 2 * * *", zone="Europe/Berlin"), accounts=SqlAccounts("select 1"),
        handler=PerAccount("not a reference")),
]
"""
DOUBTFUL = """
from shared.job import Calendar, Cron, Every, Except, Job, PerAccount, SqlAccounts, minutes
from sound_jobs import NIGHTLY, invoice

usual = {"accounts": SqlAccounts("select '1' as account"), "decisions": NIGHTLY, "handler": PerAccount(invoice)}
jobs = [
    Job("friday", schedule=Cron("0 0 13 * 5"), **usual),
    Job("often", schedule=Every(hours=6), jitter=minutes(2), **usual),
    Job("working-days", schedule=Except(Cron("0 6 * * *"), [Calendar("off", ["2026-12-25", "2099-12-25"])]), **usual),
]
"""
SECONDS = 50.0
# Each command is a process of its own, and a busy machine takes its time to start one.
pytestmark = pytest.mark.timeout(240)


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, read."""
        return json.loads(self.out)


Command = Callable[..., Ended]


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A folder with modules of jobs."""
    tmp_path.joinpath("sound_jobs.py").write_text(SOUND)
    tmp_path.joinpath("faulty_jobs.py").write_text(FAULTY)
    tmp_path.joinpath("doubtful_jobs.py").write_text(DOUBTFUL)
    return tmp_path


def environment(modules: Path, **settings: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MATINS_", "OTEL_"))}
    given = {f"MATINS_{name.upper()}": value for name, value in settings.items()}
    return own | {"PYTHONPATH": str(modules), "COLUMNS": "200"} | given


@pytest.fixture
def command(modules: Path) -> Command:
    """Runs `python -m PACKAGE …` with settings, and gives how it ended."""

    def run(*words: str, package: str = "trigger", **settings: str) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", package, *words],
            cwd=ROOT,
            env=environment(modules, **settings),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ended(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
async def empty_url(administrator_url: str) -> AsyncIterator[str]:
    """A database with nothing in it."""
    name = unique_name()
    await execute(administrator_url, f'create database "{name}"')
    yield with_path(administrator_url, name)
    await execute(administrator_url, f'drop database "{name}" with (force)')


def test_help_teaches_with_examples(command: Command) -> None:
    shown = command("--help")
    assert shown.code == 0
    assert "rerun" in shown.out
    shown = command("rerun", "--help")
    assert "python -m trigger rerun invoice-run:2026-08-25T02:00Z --failed" in shown.out
    assert command("rnu").code == 2


def test_check_passes_sound_jobs_and_notes_what_is_missing(command: Command) -> None:
    shown = command("check", "--json", "--strict", jobs="sound_jobs")
    assert shown.code == 0
    assert (shown.json["ok"], shown.json["jobs"]) == (True, ["invoice-run"])
    assert {one["level"] for one in shown.json["findings"]} == {"note"}
    assert "MATINS_DATABASE_URL" in [one["where"] for one in shown.json["findings"]]


def test_check_judges_what_is_valid_and_with_strict_fails_for_it(command: Command) -> None:
    shown = command("check", "--json", jobs="doubtful_jobs", claim_lease="6s")
    assert shown.code == 0
    told = {(one["level"], one["where"]): one for one in shown.json["findings"]}
    friday = told["warning", "job 'friday': schedule"]
    assert "either" in friday["why"]
    assert "MON#1" in friday["instead"]
    assert told["warning", "MATINS_CLAIM_LEASE"]["instead"] == "at least 15s"
    strict = command("check", "--strict", jobs="doubtful_jobs")
    assert strict.code == 1
    assert "warning: job 'friday': schedule: schedule '0 0 13 * 5' names days" in strict.err
    assert "0 errors, 1 warning, " in strict.out


def test_check_says_when_the_last_runs_could_not_be_looked_at(command: Command) -> None:
    for settings in ({}, {"database_url": "postgresql://nobody:secret@127.0.0.1:1/none"}):
        shown = command("check", "--database", "--json", jobs="sound_jobs", database_timeout="2s", **settings)
        (found,) = [one for one in shown.json["findings"] if one["where"] == "--database"]
        assert (shown.code, found["level"]) == (0, "warning")
        assert "what the last runs took" in found["why"]
        assert "secret" not in shown.out + shown.err


def test_check_tells_every_fault_at_once_with_the_block_to_paste(command: Command) -> None:
    shown = command("check", jobs="faulty_jobs,sound_jobs,no_such_module", prefetch="many", ticks="1s")
    assert shown.code == 2
    for part in (
        "MATINS_PREFETCH: is 'many': valid is a whole number from 1 to 1000",
        "MATINS_TICKS: is not a setting",
        "job 'first': schedule: cron text '0 2 * *'",
        "job 'first': accounts: query: ends with a semicolon",
        "job 'first': handler: timeout: is 5",
        "job 'second': schedule: gap: is not decided for zone 'Europe/Berlin'",
        "job 'second': schedule: fold",
        "job 'second': handler: is 'not a reference'",
        'catch_up="latest",',
        "finish_within=hours(3),",
        "module no_such_module: cannot be imported: ModuleNotFoundError",
        "trigger: module faulty_jobs: job 'first': decisions: must be decided",
        "\n# from shared.job import Decisions, hours, minutes\ndecisions=Decisions(\n    catch_up",
    ):
        assert part in shown.err
    assert "sound jobs: invoice-run" in shown.out
    assert command("check").code == 2
    empty = command("check", "--jobs", "sound_jobs", jobs="")
    assert (empty.code, "MATINS_JOBS" in empty.err) == (0, False)


def test_jobs_lists_the_sound_ones_and_tells_the_others(command: Command) -> None:
    shown = command("jobs", "--json", jobs="sound_jobs,faulty_jobs")
    assert shown.code == 1
    (job,) = shown.json["jobs"]
    assert (job["job"], job["schedule"]["text"], job["handler"]["mode"]) == ("invoice-run", "0 2 * * *", "PerAccount")
    assert job["next_at"].endswith("T02:00:00Z")
    table = command("jobs", "--zone", "Asia/Tokyo", jobs="sound_jobs").out
    assert "catch_up latest, catch_up_within 20h, overlap skip, start_within 10m, finish_within 3h" in table


def test_preview_shows_instants_and_refuses_what_cron_would_misread(command: Command) -> None:
    window = ("--from", "2026-08-25T02:00Z", "--until", "2026-08-27T02:00Z")
    shown = command("preview", "invoice-run", *window, "--json", jobs="sound_jobs")
    assert shown.code == 0
    assert [one["scheduled_at"] for one in shown.json] == [f"2026-08-{day}T02:00:00Z" for day in (25, 26, 27)]
    assert set(shown.json[0]) >= {"scheduled_at", "local"}
    berlin = ("--zone", "Europe/Berlin", "--gap", "skip", "--fold", "both", "--from", "2026-10-25T00:00Z")
    doubled = command("preview", "--cron", "30 2 * * *", *berlin, "--count", "2", "--json")
    assert [one["local"][-6:] for one in doubled.json] == ["+02:00", "+01:00"]
    for words, reason in (
        (("--cron", "0 2 * * * *"), "has 6 fields"),
        (("--cron", "0 2 * * *", "--zone", "Europe/Berlin"), "is not decided"),
        (("--cron", "0 2 * * *", "--from", "yesterday"), "not an instant"),
        (("--cron", "0 2 * * *", "--from", "2026-08-25T02:00"), "names no zone"),
        (("invoice-rum",), "did you mean invoice-run?"),
        ((), "give a JOB, or --cron TEXT"),
    ):
        refused = command("preview", *words, jobs="sound_jobs")
        assert (refused.code, refused.out) == (2, "")
        assert reason in refused.err


def test_preview_shows_months_with_exclusions_jitter_and_collisions(command: Command) -> None:
    window = ("--from", "2026-12-01T00:00Z", "--months", "13")
    shown = command("preview", "working-days", *window, "--json", jobs="doubtful_jobs")
    assert len(shown.json) == 396
    assert [one["scheduled_at"] for one in shown.json if one["due_at"] is None] == ["2026-12-25T06:00:00Z"]
    table = command("preview", "often", *window, "--notable", jobs="doubtful_jobs").out
    assert "every 6h from 2024-01-01T00:00:00Z" in table
    assert "the same instant as working-days" in table
    assert "due" in table
    cut = command("preview", "often", *window, "--count", "3", jobs="doubtful_jobs")
    assert "there may be more: 3 are shown" in cut.err
    both = command("preview", "often", *window, "--until", "2027-01-01T00:00Z", jobs="doubtful_jobs")
    assert (both.code, "--until and --months" in both.err) == (2, True)


def test_migrate_prints_what_an_administrator_applies(command: Command) -> None:
    settings = {"environment": "test", "jobs": "sound_jobs"}
    script = command("migrate", "--sql", **settings)
    assert script.code == 0
    assert "create table matins.occurrence" in script.out
    assert "values ('test', '{" in script.out
    parts = command("migrate", "--definitions", **settings)
    assert "matins.work.invoice-run" in [one["name"] for one in parts.json["queues"]]
    both = command("migrate", "--sql", "--definitions", **settings)
    assert (both.code, both.out) == (2, "")
    assert "--sql and --definitions" in both.err


async def test_a_migrate_that_needs_an_administrator_is_not_done(
    command: Command, empty_url: str, administrator_url: str
) -> None:
    mark = unique_name()
    owner = f"{mark}_owner"
    await execute(administrator_url, f"create role {owner} login password '{PASSWORD}'")
    await execute(empty_url, f"alter database {empty_url.rpartition('/')[2]} owner to {owner}")
    settings = {
        "environment": "test",
        "jobs": "sound_jobs",
        "database_url": with_login(empty_url, owner),
        "database_roles": ",".join(f"{group}={mark}_{group.removeprefix('matins_')}" for group in GROUPS),
    }
    asked = command("migrate", "--only", "database", "--json", **settings)
    assert asked.code == 1
    statements = asked.json["roles"]["administrator"]
    assert f'create role "{mark}_worker" nologin noinherit' in statements
    for one in statements:
        await execute(administrator_url, one)
    assert command("migrate", "--only", "database", **settings).code == 0
    reader = with_login(empty_url, f"{mark}_look")
    await execute(administrator_url, f"create role {mark}_look login password '{PASSWORD}' in role {mark}_reader")
    settings["database_url"] = reader
    refused = command("restored", "--reason", "put back", **settings)
    assert (refused.code, refused.out) == (2, "")
    assert "may not do this" in refused.err
    assert "held" not in refused.err
    everyone = ", ".join(f"{mark}_{kind}" for kind in ("look", "owner", "trigger", "worker", "reader"))
    await execute(empty_url, f"reassign owned by {owner} to current_user; drop owned by {everyone}")
    await execute(administrator_url, f"drop role {everyone}")


async def test_migrate_prepares_both_servers_and_refuses_what_is_anothers(
    command: Command, empty_url: str, broker_url: str, prefix: str
) -> None:
    settings = {
        "environment": "test",
        "jobs": "sound_jobs",
        "database_url": empty_url,
        "broker_url": broker_url,
        "prefix": prefix,
    }
    first = command("migrate", "--json", **settings)
    assert (first.code, first.json["broker"]["recorded"]) == (0, True)
    assert first.json["database"]["applied"][0].startswith("0001_")
    again = command("migrate", **settings)
    assert again.code == 0
    assert "nothing to apply" in again.out
    another = command("migrate", **settings | {"environment": "production"})
    assert another.code == 2
    assert "'production'" in another.err
    raised = settings | {"delivery_limit": "50"}
    assert command("migrate", **raised).code == 0
    queues = command("queues", "--json", **raised)
    assert queues.code == 0
    old, new = f"{prefix}.work.invoice-run", f"{prefix}.work.invoice-run@e54e27"
    assert {one["queue"]: one["current"] for one in queues.json if ".work." in one["queue"]} == {old: False, new: True}
    misspelt = command("retire-queue", f"{prefix}.work.invoice-rum", "--reason", "raised", **raised)
    assert misspelt.code == 2
    assert f"old ones: {old}" in misspelt.err
    assert command("retire-queue", old, "--reason", "raised", **raised).code == 0
    later = command("restored", "--reason", "put back", "--through", "2999-01-01T00:00Z", **settings)
    assert later.code == 2
    assert "--through: 2999-01-01T00:00Z is still to come" in later.err
    assert command("migrate", **settings).code == 0
    assert command("migrate", **settings | {"jobs": "faulty_jobs"}).code == 2
    alone = command("status", "--json", database_url=empty_url, broker_url=broker_url, prefix=prefix)
    assert (alone.code, alone.json["well"], len(alone.json["problems"])) == (1, False, 2)
    unseen = "amqp://someone:hidden@127.0.0.1:1/"
    async with session_on(empty_url) as session:
        for kind in ("trigger", "worker"):
            await register_instance(session, Instance(kind, kind, "host", "0.1.0", "", "2026f"), {})
    assert command("status", database_url=empty_url, broker_url=broker_url, prefix=prefix).code == 0
    shown = command("status", "--days", "0", database_url=empty_url, broker_url=unseen)
    assert (shown.code, "cannot tell: the queues were not seen" in shown.out) == (2, True)
    assert "hidden" not in shown.out + shown.err


def test_without_servers_there_is_one_line_and_no_password(command: Command) -> None:
    url = "postgresql://someone:hidden@127.0.0.1:1/matins"
    for words in (("status",), ("occurrences",), ("show", "invoice-run:2026-08-25T02:00Z")):
        shown = command(*words, database_url=url)
        assert shown.code == 2
        assert len(shown.err.strip().split("\n")) == 1
        assert "hidden" not in shown.err
    shown = command(
        "doctor",
        "--json",
        environment="test",
        jobs="sound_jobs",
        database_url=url,
        broker_url="amqp://u:hidden@127.0.0.1:1/",
    )
    assert shown.code == 2
    assert {one["check"] for one in shown.json["findings"] if one["level"] == "fail"} == {"database", "broker"}
    assert "hidden" not in shown.out + shown.err


async def test_occurrences_and_show_tell_what_happened(command: Command, database_url: str) -> None:
    async with session_on(database_url) as session:
        await closed_night(session)
    listed = command("occurrences", "invoice-run", "--json", database_url=database_url)
    (one,) = listed.json
    assert (listed.code, one["occurrence"], one["state"]) == (0, "invoice-run:2026-08-25T02:00Z", "partial")
    shown = command(
        "show", one["occurrence"], "--accounts", "failed", "--limit", "1", "--json", database_url=database_url
    )
    assert shown.json["counts"]["total"] == 5
    assert [account["account"] for account in shown.json["accounts"]["page"]] == ["b"]
    assert shown.json["accounts"]["next_after"] == "b"
    for_people = command("show", one["occurrence"], "--zone", "Europe/Berlin", database_url=database_url)
    assert "TaxServiceDown" in for_people.out
    assert "CEST" in for_people.out
    assert command("status", database_url=database_url).code == 1
    assert command("show", "invoice-run@", database_url=database_url).code == 2
    unknown = command("show", "invoice-rum:2026-08-25T02:00Z", database_url=database_url)
    assert (unknown.code, "did you mean invoice-run?" in unknown.err) == (2, True)


async def test_an_operator_fires_reruns_and_cancels(command: Command, database_url: str) -> None:
    settings = {"environment": "test", "database_url": database_url}
    async with session_on(database_url) as session:
        await session.execute("insert into matins.environment (name) values ('test')")
        occurrence, _ = await closed_night(session)
        fired_id = await expected_occurrence(session, nightly("fired-run"))
        rerun = ("rerun", str(occurrence.identity), "--failed", "--reason", "the tax service is back")
        started = command(*rerun, "--actor", "ann", "--json", **settings)
        assert (started.code, started.json["generation"], started.json["accounts"]) == (0, 2, 3)
        assert (await ledger(session, occurrence.id))["b"]["generation"] == 2
        again = command(*rerun, **settings)
        assert (again.code, "runs already, in generation 2" in again.err) == (2, True)
        due = ("fire", "fired-run", "--at", "2026-08-25T02:00Z")
        late = command("fire", "fired-run", "--reason", "the fleet was down", **settings)
        assert (late.code, "later than start_within (600 s) ago" in late.err) == (2, True)
        assert command(*due, "--reason", "the fleet was down", **settings).code == 0
        loser = command(*due, "--reason", "me too", **settings)
        assert (loser.code, "fired by" in loser.err) == (1, True)
        again = command(*due, "--deduplicate", "--reason", "a scheduler", "--json", **settings)
        assert (again.code, again.json["deduplicated"], again.json["state"]) == (0, True, "claimed")
        attempts = command("attempts", "fired-run:2026-08-25T02:00Z", "--json", **settings)
        assert (attempts.code, [one["won"] for one in attempts.json["attempts"]]) == (0, [True, False, False])
        later = command("fire", "fired-run", "--at", "2026-08-26T02:00Z", "--reason", "x", **settings)
        assert (later.code, "nearest: 2026-08-25T02:00Z" in later.err) == (2, True)
        soon = (datetime.now(UTC) + timedelta(seconds=50)).replace(microsecond=0)
        await expected_occurrence(session, nightly("soon-run"), soon)
        for at in ("due", soon.isoformat()):
            early = command("fire", "soon-run", "--at", at, "--deduplicate", "--reason", "a timer", **settings)
            # A scheduler whose clock is a little ahead comes again; 2 would leave the occurrence out.
            assert (early.code, "due yet" in early.err) == (1, True)
        cancelled = command(
            "cancel", "fired-run:2026-08-25T02:00Z", "--reason", "wrong", "--wait", "--json", **settings
        )
        assert (cancelled.code, cancelled.json["state"]) == (0, "cancelled")
        assert (await occurrence_row(session, fired_id))["state"] == "cancelled"
        wrong = command(*rerun, **settings | {"environment": "production"})
        assert (wrong.code, "refusing to touch it" in wrong.err) == (2, True)
        nothing = command("cancel", str(occurrence.identity), "--reason", " ", **settings)
        assert (nothing.code, "--reason" in nothing.err) == (2, True)


async def test_a_worker_tries_one_account(command: Command, database_url: str) -> None:
    settings = {"package": "worker", "jobs": "sound_jobs", "database_url": database_url}
    good = command("try", "invoice-run", "--account", "1", "--dry-run", "--twice", "--json", **settings)
    assert (good.code, good.json["good"], good.json["kept"]) == (0, True, False)
    assert [one["result"] for one in good.json["runs"]] == ["succeeded", "succeeded"]
    assert "this is for a person" in good.err
    bad = command("try", "invoice-run", "--account", "broken", "--yes", **settings)
    assert bad.code == 1
    assert "ValueError: no address; a worker would try again after" in bad.out
    unasked = command("try", "invoice-run", "--account", "1", **settings)
    assert (unasked.code, "add --yes" in unasked.err) == (2, True)
    assert command("try", "invoice-rum", "--account", "1", **settings).code == 2


async def test_several_triggers_migrate_and_serve_on_empty_servers(
    modules: Path, empty_url: str, broker_url: str, prefix: str
) -> None:
    variables = environment(
        modules, environment="test", jobs="sound_jobs", database_url=empty_url, broker_url=broker_url, prefix=prefix
    )
    served = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trigger", "serve", "--migrate"),
            cwd=ROOT,
            env=variables,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        for _ in range(3)
    ]
    try:
        async with asyncio.timeout(SECONDS):
            for process in served:
                assert process.stdout is not None
                while b'"working"' not in (line := await process.stdout.readline()):
                    assert line, "it ended before it worked"
            for process in served:
                process.send_signal(signal.SIGTERM)
            ends = [await process.communicate() for process in served]
        assert [process.returncode for process in served] == [0, 0, 0], ends
    finally:
        for process in served:
            if process.returncode is None:
                process.kill()
