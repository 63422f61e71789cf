from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import aio_pika
import pytest

from examples.servers.find import Broker
from shared.definition import fingerprints
from shared.fleet import Instance, register_instance
from shared.load import load_jobs
from shared.settings import load_settings
from shared.start import topology_of
from tests.support.broker import administrator, consuming, manage, virtual_host_of
from tests.support.broker_users import broker_users, grant, named, user_of
from tests.support.ledger import session_on
from tests.support.logins import MAPPED, as_login, grant_rights, make_logins
from tests.support.servers import execute
from trigger.broker_rights import WHO, rights_under
from trigger.deploy import migrate_broker, migrate_database
from trigger.doctor import examine
from trigger.doctor_finding import Finding
from trigger.register import register

MODULE = "examples.billing.jobs"
# No setting of ours: where `prepare` finds an administrator's address.
ADMINISTRATOR = "MATINS_TEST_DATABASE_URL"
JOBS = ("charge", "invoice-run", "usage-rollup")


async def found(sources: Mapping[str, str]) -> dict[tuple[str, str], list[Finding]]:
    """Examine; give the findings by check and level."""
    findings: dict[tuple[str, str], list[Finding]] = {}
    async for one in examine(sources):
        findings.setdefault((one.check, one.level), []).append(one)
    return findings


def troubles(findings: dict[tuple[str, str], list[Finding]]) -> set[tuple[str, str]]:
    """Give what is not well."""
    return {key for key in findings if key[1] != "ok"}


@pytest.fixture
async def sources(database_url: str, broker_url: str, broker: Broker, prefix: str) -> dict[str, str]:
    """Settings of a trigger of a deployment whose servers are there and empty."""
    async with session_on(database_url) as session:
        await make_logins(session)
        await grant_rights(session, {})
    return {
        ADMINISTRATOR: database_url,
        "MATINS_DATABASE_ROLES": MAPPED,
        "MATINS_ENVIRONMENT": "test",
        "MATINS_JOBS": MODULE,
        "MATINS_DATABASE_URL": as_login(database_url, "trigger"),
        "MATINS_BROKER_URL": broker_url,
        "MATINS_MANAGEMENT_URL": broker.management_url or "",
        "MATINS_PREFIX": prefix,
    }


async def prepare(sources: dict[str, str]) -> None:
    """Migrate both servers."""
    settings = load_settings(sources | {"MATINS_DATABASE_URL": sources[ADMINISTRATOR]})
    await migrate_database(settings)
    await migrate_broker(settings, topology_of(settings, load_jobs(settings.jobs).jobs), record=True)


async def start_fleet(database_url: str, handlers: Mapping[str, str | None], *, revision: int = 1) -> None:
    """Have a trigger and a worker live, as they record themselves."""
    async with session_on(database_url) as session:
        for job in load_jobs((MODULE,)).jobs.values():
            await register(session, job, instance="trigger-1")
        trigger = Instance("trigger-1", "trigger", "host", "0.1.0", "", "2026f")
        worker = Instance("worker-1", "worker", "host", "0.1.0", "", "2026f")
        await register_instance(session, trigger, dict.fromkeys(JOBS, revision))
        await register_instance(session, worker, handlers)


async def test_a_deployment_in_order_has_no_troubles(
    sources: dict[str, str], database_url: str, broker_url: str, broker: Broker
) -> None:
    await prepare(sources)
    await start_fleet(database_url, dict.fromkeys(JOBS))
    prefix = sources["MATINS_PREFIX"]
    queues = [f"{prefix}.work.{name}" for name in JOBS] + [f"{prefix}.dead.accounted"]
    with broker_users(broker, broker_url, prefix) as addresses:
        limited = {"MATINS_BROKER_URL": addresses["operator"], "MATINS_BROKER_USERS": named(addresses)}
        async with consuming(addresses["worker"], *queues):
            findings = await found(sources | limited)
    assert troubles(findings) == set()
    well = {check for check, level in findings if level == "ok"}
    assert well >= {"settings", "jobs", "database", "writable", "clock", "schema", "environment", "topology record"}
    assert well >= {"connections", "broker", "topology", "consumers", "dead letters", "triggers", "workers", "handlers"}
    assert well >= {"broker rights", "arguments", "revisions", "release", "tzdata"}


async def test_zone_data_of_another_release_on_this_machine_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.joinpath("tzdata.zi").write_text("# version 1999a\n")
    tmp_path.joinpath("UTC").touch()
    monkeypatch.setattr("zoneinfo.TZPATH", (str(tmp_path),))
    findings = await found({"MATINS_JOBS": MODULE})
    assert "1999a" in findings["time zones", "ok"][0].found


async def test_servers_that_were_never_migrated_say_what_to_do(sources: dict[str, str]) -> None:
    findings = await found(sources)
    assert {("topology", "fail"), ("environment", "fail"), ("topology record", "warn")} <= troubles(findings)
    assert "migrate" in findings["topology", "fail"][0].advice
    assert "migrate" in findings["environment", "fail"][0].advice


async def test_servers_that_cannot_be_reached_fail_their_own_checks_only(sources: dict[str, str]) -> None:
    away = sources | {
        "MATINS_DATABASE_URL": "postgresql://someone:hidden@127.0.0.1:1/matins",
        "MATINS_BROKER_URL": "amqp://someone:hidden@127.0.0.1:1/",
    }
    findings = await found(away)
    assert troubles(findings) == {("database", "fail"), ("broker", "fail")}
    assert "hidden" not in str(findings)


async def test_missing_and_faulty_settings_are_told(sources: dict[str, str]) -> None:
    missing = await found({"MATINS_JOBS": MODULE})
    assert "MATINS_DATABASE_URL" in missing["settings", "fail"][0].found
    assert ("jobs", "ok") in missing
    faulty = await found(sources | {"MATINS_PREFETCH": "many", "MATINS_TICK": "1s"})
    assert len(faulty["settings", "fail"]) == 2


async def test_a_fleet_that_declares_a_job_in_two_ways_is_told(sources: dict[str, str], database_url: str) -> None:
    await prepare(sources)
    await start_fleet(database_url, dict.fromkeys(JOBS))
    declared = fingerprints(load_jobs((MODULE,)).jobs)
    async with session_on(database_url) as session:
        for name, kind, definitions in (
            ("t-old", "trigger", declared | {"charge": "0" * 64}),
            ("w-new", "worker", declared),
        ):
            instance = Instance(name, kind, "host", "0.1.0", "", "2026f")
            await register_instance(session, instance, dict.fromkeys(JOBS, 1), definitions=definitions)
    findings = await found(sources)
    [finding] = findings["definitions", "warn"]
    assert finding.found.startswith("charge: live processes hold 2 definitions since ")
    assert "trigger t-old (never current, 000000000000)" in finding.found
    assert f"worker w-new (revision 1, current, {declared['charge'][:12]})" in finding.found


async def test_a_fleet_that_cannot_do_its_work_is_told(sources: dict[str, str], database_url: str) -> None:
    await prepare(sources)
    handlers = {
        "charge": "billing.charges:charge: ModuleNotFoundError: no module named 'payments'",
        "invoice-run": None,
    }
    await start_fleet(database_url, handlers, revision=7)
    async with session_on(database_url) as session:
        vanished = load_jobs((MODULE,)).jobs["charge"]
        object.__setattr__(vanished, "name", "gone")
        await register(session, vanished, instance="trigger-1")
    object.__setattr__(vanished, "name", "charge")
    findings = await found(sources)
    unable = [one.found for one in findings["handlers", "fail"]]
    assert any("no module named 'payments'" in one for one in unable)
    assert any(one.startswith("usage-rollup: 0 of 1") for one in unable)
    assert "hold revisions [7], 1 is current" in findings["revisions", "warn"][0].found
    assert findings["vanished", "warn"][0].found.startswith("gone is known to the database")
    assert "`python -m trigger retire gone --reason …` skips what waits" in findings["vanished", "warn"][0].advice
    assert "0 consumers" in findings["consumers", "warn"][0].found


async def test_nothing_live_and_dead_letters_are_told(
    sources: dict[str, str], database_url: str, broker_url: str
) -> None:
    await prepare(sources)
    prefix = sources["MATINS_PREFIX"]
    async with administrator(broker_url) as channel:
        exchange = await channel.get_exchange(f"{prefix}.dead", ensure=False)
        await exchange.publish(aio_pika.Message(b"{}"), "")
    findings = await found(sources)
    assert findings["triggers", "fail"][0].found == "0 live"
    assert "serve" in findings["workers", "fail"][0].advice
    assert findings["dead letters", "warn"][0].found.startswith("1 messages are parked")
    assert ("consumers", "fail") in findings


async def test_a_server_that_takes_no_writes_or_is_anothers_is_told(
    sources: dict[str, str], administrator_url: str, database_url: str
) -> None:
    await prepare(sources)
    name = database_url.rpartition("/")[2]
    await execute(administrator_url, f'alter database "{name}" set default_transaction_read_only = on')
    findings = await found(sources | {"MATINS_ENVIRONMENT": "production"})
    assert findings["writable", "fail"][0].found == "default_transaction_read_only is on"
    assert "'production'" in findings["environment", "fail"][0].found
    assert ("topology", "fail") in findings
    assert ("topology record", "fail") in findings


async def test_arguments_that_were_changed_past_us_show_through_the_management_interface(
    sources: dict[str, str], broker: Broker, broker_url: str
) -> None:
    await prepare(sources)
    queue, host = f"{sources['MATINS_PREFIX']}.work.charge", virtual_host_of(broker_url)
    manage(broker, "DELETE", f"/api/queues/{host}/{queue}")
    assert (await found(sources))["parts", "fail"][0].found == f"missing on the broker: {queue}"
    body = {"durable": True, "auto_delete": False, "arguments": {"x-queue-type": "quorum"}}
    manage(broker, "PUT", f"/api/queues/{host}/{queue}", body)
    findings = await found(sources)
    assert f"queue {queue}: x-delivery-limit is None, 20 is needed" in findings["arguments", "fail"][0].found


async def test_a_user_of_the_broker_that_may_do_more_or_less_is_told(
    sources: dict[str, str], broker: Broker, broker_url: str
) -> None:
    await prepare(sources)
    prefix = sources["MATINS_PREFIX"]
    manifest = rights_under(prefix)
    with broker_users(broker, broker_url, prefix) as addresses:
        mine = sources | {"MATINS_BROKER_USERS": named(addresses), "MATINS_BROKER_URL": addresses["worker"]}
        alone = mine | {"MATINS_MANAGEMENT_URL": ""}
        worker, trigger = user_of(addresses["worker"]), user_of(addresses["trigger"])
        assert len((await found(alone))["broker rights", "ok"]) == 1
        assert len((await found(mine))["broker rights", "ok"]) == 1 + len(WHO)

        grant(broker, broker_url, worker, replace(manifest["worker"], configure=f"^{prefix}"))
        more = (await found(alone))["broker rights", "fail"][0]
        assert more.found.startswith(f"user {worker!r} may configure exchange {prefix}.environment, ")
        assert more.found.endswith(" more, which a worker needs not")
        assert "trigger rights" in more.advice

        grant(broker, broker_url, worker, replace(manifest["worker"], read="^$", write=".*"))
        [both] = (await found(alone))["broker rights", "fail"]
        assert f"write exchange {prefix}.dead, write what is not ours, write the default exchange" in both.found
        assert f"may not read queue {prefix}.dead.accounted, read queue {prefix}.work.charge, " in both.found

        grant(broker, broker_url, worker, manifest["worker"])
        grant(broker, broker_url, trigger, replace(manifest["trigger"], read=f"^{prefix}\\.work\\.charge$"))
        [other] = (await found(mine))["broker rights", "fail"]
        assert other.found == f"user {trigger!r} may read queue {prefix}.work.charge, which a trigger needs not"
        grant(broker, broker_url, trigger, replace(manifest["trigger"], read=r"^\Qwork\E$"))
        assert "cannot be compared" in (await found(mine))["broker rights", "warn"][0].found


async def test_what_was_asked_of_the_broker_changed_nothing(
    sources: dict[str, str], broker: Broker, broker_url: str
) -> None:
    await prepare(sources)
    host = virtual_host_of(broker_url)

    def parts() -> list[list[str]]:
        listed = [manage(broker, "GET", f"/api/{kind}/{host}") for kind in ("exchanges", "queues", "bindings")]
        return [sorted(one.get("name") or str(one) for one in kind) for kind in listed]

    before = parts()
    assert ("broker rights", "warn") in await found(sources), "an administrator may do more than anybody needs"
    assert parts() == before
    assert all(manage(broker, "GET", f"/api/queues/{host}/{name}").get("messages", 0) == 0 for name in before[1])


async def test_pools_that_do_not_fit_the_server_are_told(sources: dict[str, str], database_url: str) -> None:
    await prepare(sources)
    await start_fleet(database_url, dict.fromkeys(JOBS))
    findings = await found(sources | {"MATINS_POOL_SIZE": "1000"})
    assert "2 live processes with up to 1000 each: 2000 of" in findings["connections", "fail"][0].found
