"""The JSON has the values of the commands and of SQL, on the same database."""

import json
import os
from dataclasses import asdict
from typing import Any, Final

import pytest

from schemas.occurrence import Identity, parse_identity
from shared.job import PerAccount
from shared.postgres import Session
from tests.console.commanded import commanded
from tests.console.night import JOB, make_night, nothing
from tests.console.serving import Served, serving
from tests.support.fleet import deploy, prepared_for
from tests.support.ledger import job_with, session_on
from trigger.queues import list_queues

FROM: Final = "2026-10-20T00:00Z"
# What passes between one look and the next.
PASSING: Final = frozenset({"seconds", "per_second", "seconds_left", "silent_seconds"})
CRON: Final = ("--cron", "30 2 * * *", "--zone", "Europe/Berlin", "--gap", "next_valid", "--fold", "first")


async def asked(console: Served, path: str) -> Any:
    answer = await console.get(f"/api/v1/{path}")
    assert answer.status == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    return json.loads(answer.text)


async def order(session: Session, failed: Identity) -> None:
    """Record a backfill and a maintenance, as people order them."""
    backfill = await session.fetchval(
        """insert into matins.backfill (job, since, until, mode, reverse, max_active, actor, reason)
           values ($1, $2, $2, 'failed', false, 1, 'ann', 'the provider is back') returning id""",
        failed.job,
        failed.scheduled_at,
    )
    await session.execute(
        "insert into matins.backfill_occurrence select $1, id, 2 from matins.occurrence where job = $2",
        backfill,
        failed.job,
    )
    await session.execute(
        """insert into matins.maintenance (job, since, until, actor, reason)
           select job, at, at + interval '1 hour', 'ann', 'the provider moves'
             from unnest(array[$1, null]) job, unnest(array[now(), now() - interval '2 hours']) at""",
        failed.job,
    )


@pytest.mark.timeout(60)
async def test_the_values_are_those_of_the_commands(database_url: str) -> None:
    async with session_on(database_url) as session:
        failed = await make_night(session)
        await order(session, parse_identity(failed))
    alike = {
        "status": ("status",),
        f"jobs/{JOB}/stats?last=5": ("stats", JOB, "--last", "5"),
        f"jobs/{JOB}/attempts?days=9": ("attempts", JOB, "--days", "9"),
        f"jobs/{JOB}/preview?from={FROM}&count=12": ("preview", *CRON, "--from", FROM, "--count", "12"),
        f"jobs/{JOB}/preview?from={FROM}&months=5": ("preview", *CRON, "--from", FROM, "--months", "5"),
        "occurrences?limit=1000": ("occurrences", "--limit", "1000"),
        f"occurrences?job={JOB}&state=partial&state=running&since={FROM}": (
            *("occurrences", JOB, "--state", "partial", "--state", "running", "--since", FROM),
        ),
        f"occurrences/{failed}": ("show", failed),
        f"occurrences/{failed}/attempts": ("attempts", failed),
        "alerts": ("alerts",),
        "alerts?closed=true&kind=partial&limit=1": ("alerts", "--all", "--kind", "partial", "--limit", "1"),
        "alerts/1": ("alert", "1"),
        f"alerts/partial:{failed}": ("alert", f"partial:{failed}"),
        "audit?limit=1000": ("audit", "--limit", "1000"),
        f"audit?occurrence={failed}&kind=rerun&actor=ann": (
            *("audit", "--occurrence", failed, "--kind", "rerun", "--actor", "ann"),
        ),
        "backfills": ("backfills",),
        "maintenance?over=true": ("maintenance", "list", "--all"),
        f"maintenance?job={JOB}": ("maintenance", "list", JOB),
    }
    variables = {"MATINS_DATABASE_URL": database_url, "MATINS_ENVIRONMENT": "test", "PATH": os.environ["PATH"]}
    said = await commanded(variables, *alike.values())
    async with serving(database_url) as console:
        for path, told in zip(alike, said, strict=True):
            assert still(await asked(console, path)) == still(told), path
        jobs = await asked(console, "jobs")
        assert [{name: job[name] for name in said[0]["jobs"][0]} for job in jobs] == said[0]["jobs"]
        assert [await asked(console, f"jobs/{job['job']}") for job in jobs] == jobs


def still(told: Any) -> Any:
    """Leave out what is another value at each look."""
    match told:
        case list():
            return [still(one) for one in told]
        case dict() if "per_second" in told or "silent_seconds" in told:
            return {name: still(one) for name, one in told.items() if name not in PASSING}
        case dict() if "instances" in told and "since" in told:
            return still(told["instances"])
        case dict():
            return {name: still(one) for name, one in told.items()}
    return told


async def test_the_accounts_are_those_of_the_ledger_page_by_page(database_url: str) -> None:
    async with session_on(database_url) as session:
        failed = await make_night(session)
        rows = await session.fetch(
            """select l.account, l.state from matins.ledger l join matins.occurrence o on o.id = l.occurrence_id
                where o.job = $1 and o.state = 'partial' order by l.account""",
            JOB,
        )
    async with serving(database_url) as console:
        found: list[dict[str, Any]] = []
        after = ""
        while True:
            asked_for = {"limit": "7"} | ({"after": after} if after else {})
            answer = await console.get(f"/api/v1/occurrences/{failed}/accounts", params=asked_for)
            page = json.loads(answer.text)
            found += page["page"]
            after = page["next_after"]
            if after is None:
                break
        assert [(one["account"], one["state"]) for one in found] == [tuple(row) for row in rows]
        dead = await asked(console, f"occurrences/{failed}/accounts?state=dead&state=cancelled&limit=1000")
        assert [one["account"] for one in dead["page"]] == [row["account"] for row in rows if row["state"] == "dead"]
        assert dead["states"] == ["dead", "cancelled"]


async def test_the_numbers_are_those_of_sql(database_url: str) -> None:
    async with session_on(database_url) as session:
        await make_night(session)
        counted: Any = await session.fetchrow(
            """select (select count(*) from matins.occurrence where state <> 'expected') as occurrences,
                      (select count(*) from matins.alert where closed_at is null) as alerts,
                      (select count(*) from matins.audit) as entries,
                      (select count(*) from matins.job) as jobs,
                      (select count(*) from matins.ledger l join matins.occurrence o on o.id = l.occurrence_id
                        where o.state = 'running' and l.state = 'succeeded') as done"""
        )
        recorded = {row["name"]: row["definition"] for row in await session.fetch("select * from matins.job")}
    async with serving(database_url) as console:
        assert len(await asked(console, "occurrences?limit=1000")) == counted["occurrences"]
        assert (await asked(console, "alerts?limit=1"))["found"] == counted["alerts"] > 1
        assert len(await asked(console, "audit?limit=1000")) == counted["entries"]
        jobs = await asked(console, "jobs")
        assert {job["job"]: job["definition"] for job in jobs} == recorded
        assert len(jobs) == counted["jobs"]
        (running,) = await asked(console, f"occurrences?job={JOB}&state=running")
        shown = await asked(console, f"occurrences/{running['occurrence']}")
        assert shown["progress"]["done"] == shown["counts"]["succeeded"] == counted["done"] > 0


async def test_the_queues_are_those_of_the_command(database_url: str, broker_url: str, prefix: str) -> None:
    async with session_on(database_url) as session:
        await make_night(session)
        job = job_with(PerAccount(nothing), JOB)
        prepared = prepared_for("trigger", [job], database_url, broker_url, prefix, environment="test")
        await deploy(prepared)
        lines = await list_queues(session, broker_url, prepared.topology, timeout=20)
        # As after a release that no longer declares the other jobs.
        await session.execute("update matins.job set retired_at = now() where name <> $1", JOB)
    assert sum(line.current for line in lines) > 3
    async with serving(database_url, broker_url, prefix=prefix) as console:
        assert await asked(console, "queues") == json.loads(json.dumps([asdict(line) for line in lines]))
