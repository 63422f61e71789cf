"""The judge of the drills is judged: it says nothing of a good night, and names each fault that is planted in one."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aio_pika
import pytest

from examples.servers.find import Broker
from schemas.message import WorkMessage, encode
from shared.postgres import Session, connect
from tests.support.checker import INVARIANTS, check, judge_outside
from tests.support.checker_deployment import processes_left
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.nights import assert_night, occurrence_of
from tests.support.processes import deployment
from tests.support.servers import execute, fresh_virtual_host, unique_name, with_path

ACCOUNTS = 12
JOBS = """
async def fails_once(call):
    if call.account == "a000003" and not (HERE / "mended").exists():
        raise GiveUp("no tax id")
    await effect(call)


async def kills(call):
    if call.account == "a000003":
        os.abort()
    await effect(call)


async def outside(call):
    return None

jobs = [
    nightly("night", PerAccount(fails_once, chunk_size=5)),
    nightly("killed", PerAccount(kills)),
    nightly("outside", Outside(outside, key_valid_for=hours(24))),
]
"""
ALL = dict.fromkeys(("night", "killed", "outside"), "select id from account")
NIGHT = "(select id from matins.occurrence where job = 'night' and claimed_at is not null)"
NEXT = "(select id from matins.occurrence where job = 'night' and scheduled_at > now() order by scheduled_at limit 1)"
KILLED = "(select id from matins.occurrence where job = 'killed' and claimed_at is not null)"


@dataclass(frozen=True, slots=True)
class Night:
    """A night that is over: the database to copy, its virtual host, and what the processes said."""

    administrator_url: str
    database: str
    broker_url: str
    prefix: str
    logs: list[Path]


@pytest.fixture(scope="module")
def night(
    administrator_url: str, template: str, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Night]:
    """A good night with everything in it: a failure, a re-run, a killer, outside calls."""
    name, prefix = unique_name(), unique_name()
    with fresh_virtual_host(broker) as broker_url:
        asyncio.run(execute(administrator_url, f'create database "{name}" template "{template}"'))
        url = with_path(administrator_url, name)
        logs = asyncio.run(good_night(tmp_path_factory.mktemp("night"), url, broker_url, prefix))
        yield Night(administrator_url, name, broker_url, prefix, logs)
        asyncio.run(execute(administrator_url, f'drop database "{name}" with (force)'))


async def good_night(folder: Path, url: str, broker_url: str, prefix: str) -> list[Path]:
    async with deployment(folder, url, broker_url, prefix, max_crashes="2") as deployed, session_on(url) as session:
        deployed.declare(JOBS)
        await deployed.deploy(ACCOUNTS)
        deployed.start("trigger")

        async def closed() -> bool:
            """Replace the worker that was ended, as a supervisor does, until all is closed."""
            if not any(one.kind == "worker" and one.alive for one in deployed.services):
                deployed.start("worker")
            rows = [await occurrence_of(session, deployed, job.name) for job in deployed.jobs]
            return all(row["closed_at"] for row in rows)

        await until(closed)
        await assert_night(session, deployed, "killed", ACCOUNTS, state="partial")
        await assert_night(session, deployed, "outside", ACCOUNTS)
        row = await assert_night(session, deployed, "night", ACCOUNTS, state="partial")
        (folder / "mended").touch()
        name = f"{row['job']}:{deployed.night:%Y-%m-%dT%H:%MZ}"
        await deployed.command("rerun", name, "--failed", "--reason", "mended")
        await assert_night(session, deployed, "night", ACCOUNTS, generation=2)
    return [service.log for service in deployed.services]


@pytest.fixture
async def session(night: Night) -> AsyncIterator[Session]:
    """A session on the night's database."""
    async with session_on(with_path(night.administrator_url, night.database)) as looking:
        yield looking


@pytest.fixture
async def planting(session: Session) -> AsyncIterator[Session]:
    """The session in a transaction that is undone, to plant a fault in."""
    undone = session.transaction()
    await undone.start()
    yield session
    await undone.rollback()


async def rules(session: Session, broker_url: str | None = None, **more: object) -> set[str]:
    found = await check(session, broker_url, accounts=ALL, **more)  # type: ignore[arg-type] # as the caller says
    assert {one.rule for one in found} <= set(INVARIANTS)
    assert all(one.row and one.seen for one in found), "each names its row, and what was seen"
    return {one.rule for one in found}


async def test_a_good_night_has_nothing(session: Session, night: Night) -> None:
    assert await rules(session, night.broker_url, logs=night.logs, secrets=["canary"]) == set()
    assert await session.fetchval("select count(*) from matins.ledger where state = 'dead'") == 1
    assert await session.fetchval("select count(*) from checker.fault") == 0


# Behind the recorder's back: what is left, and not how it came there.
UNSEEN = {
    "second effect": (
        "insert into effect (account, occurrence) select account, occurrence from effect limit 1",
        {"second effect"},
    ),
    "effect missing": (
        "delete from effect where account = 'a000001' and occurrence like 'night:%'",
        {"effect missing"},
    ),
    "effect of one that is dead": (
        """insert into effect (account, occurrence)
           select 'a000003', occurrence from effect where occurrence like 'killed:%' limit 1""",
        {"effect without success"},
    ),
    "effect of a stranger": (
        "insert into effect (account, occurrence) select 'stranger', occurrence from effect limit 1",
        {"effect without success"},
    ),
    "effect of no occurrence": (
        "insert into effect (account, occurrence) values ('a000001', 'night:1999-01-01T00:00Z')",
        {"effect without success"},
    ),
    "count off by one": (
        f"update matins.occurrence set succeeded = succeeded + 1, total = total + 1 where id = {NIGHT}",
        {"counts do not add up", "counts are not those of the rows"},
    ),
    "success counted as failure": (
        f"update matins.occurrence set succeeded = succeeded - 1, failed = 1 where id = {NIGHT}",
        {"counts are not those of the rows", "state does not follow from the counts"},
    ),
    "wrong state": (
        f"update matins.occurrence set state = 'failed' where id = {NIGHT}",
        {"state does not follow from the counts", "audit does not lead to the row"},
    ),
    "count in the report": (
        f"""update matins.occurrence set report = jsonb_set(report, '{{counts,succeeded}}', '1')
            where id = {NIGHT}""",
        {"report is not what the rows say"},
    ),
    "class in the report": (
        f"update matins.occurrence set report = report - 'error_classes' where id = {KILLED}",
        {"report is not what the rows say"},
    ),
    "generation in the report": (
        f"update matins.occurrence set report = report - 'generations' where id = {NIGHT}",
        {"report is not what the rows say"},
    ),
    "second terminal row": (
        f"""alter table matins.occurrence drop constraint occurrence_job_scheduled_at_variant_key;
            insert into matins.occurrence (job, scheduled_at, due_at, state, reason, revision, window_since,
                                           window_until, tzdata_version)
            select job, scheduled_at, due_at, 'skipped', 'superseded', revision, window_since, window_until,
                   tzdata_version
              from matins.occurrence where id = {NIGHT}""",
        {"due instant twice", "not one win", "effect without success"},
    ),
    "due instant without a row": (
        "update matins.job set known_since = known_since - interval '1 day' where name = 'night'",
        {"due instant without a row"},
    ),
    "instant of nobody's schedule": (
        f"""alter table matins.occurrence drop constraint occurrence_scheduled_at_check;
            insert into matins.occurrence (job, scheduled_at, due_at, state, reason, revision, window_since,
                                           window_until, tzdata_version)
            select job, scheduled_at - interval '100 ms', due_at, 'skipped', 'superseded', revision, window_since,
                   window_until, tzdata_version
              from matins.occurrence where id = {NIGHT}""",
        {"row off the schedule"},
    ),
    "two wins": (
        """insert into matins.attempt (job, scheduled_at, instance, won)
           select job, scheduled_at, 'other', true from matins.attempt where won and job = 'night'""",
        {"not one win"},
    ),
    "claimed too early": (
        f"update matins.occurrence set due_at = claimed_at + interval '1 second' where id = {NIGHT}",
        {"claimed before it was due"},
    ),
    "missing attempt": ("delete from matins.attempt where job = 'night'", {"not one win"}),
    "account twice": (
        f"""select matins.ensure_ledger_partition(scheduled_at - interval '40 days')
              from matins.occurrence where id = {NIGHT};
            insert into matins.ledger (occurrence_id, scheduled_at, account, position)
            select occurrence_id, scheduled_at - interval '40 days', account, position
              from matins.ledger where occurrence_id = {NIGHT} and account = 'a000001'""",
        {
            "account twice",
            "row of another instant",
            "rows beyond the fan-out",
            "open row in a closed occurrence",
            "counts do not add up",
            "effect without success",
        },
    ),
    "row without its occurrence": (
        """insert into matins.ledger (occurrence_id, scheduled_at, account, position)
           select 999, scheduled_at, account, position from matins.ledger limit 1""",
        {"row without its occurrence"},
    ),
    "row of a later generation": (
        f"update matins.ledger set generation = 3 where occurrence_id = {NIGHT} and account = 'a000001'",
        {"row of a later generation"},
    ),
    "place of nobody": (
        f"update matins.ledger set position = 10000 where occurrence_id = {NIGHT} and account = 'a000001'",
        {"rows beyond the fan-out"},
    ),
    "account left out": ("insert into account values ('late')", {"account without a row"}),
    "account lost": (
        f"delete from matins.ledger where occurrence_id = {NIGHT} and account = 'a000001'",
        {
            "account without a row",
            "counts do not add up",
            "counts are not those of the rows",
            "report is not what the rows say",
            "effect without success",
        },
    ),
    "open row": (
        f"""update matins.ledger set state = 'pending', finished_at = null
             where occurrence_id = {NIGHT} and account = 'a000001'""",
        {
            "open row in a closed occurrence",
            "counts are not those of the rows",
            "report is not what the rows say",
            "effect without success",
        },
    ),
    "try missing": (
        f"update matins.ledger set attempts = 0 where occurrence_id = {NIGHT} and account = 'a000001'",
        {"try missing"},
    ),
    "dead without a start": (
        f"update matins.ledger set starts = 0 where occurrence_id = {KILLED} and state = 'dead'",
        {"try missing"},
    ),
    "missing close in the audit": (
        f"delete from matins.audit where occurrence_id = {KILLED} and kind = 'closed'",
        {"audit does not lead to the row"},
    ),
    "missing claim in the audit": (
        f"delete from matins.audit where occurrence_id = {KILLED} and kind = 'claim'",
        {"audit does not lead to the row"},
    ),
    "missing re-run in the audit": (
        f"delete from matins.audit where occurrence_id = {NIGHT} and kind = 'rerun'",
        {"audit does not lead to the row"},
    ),
    "takeover of nothing": (
        f"insert into matins.audit (kind, job, occurrence_id, detail) select 'takeover', 'night', {NIGHT}, '{{}}'",
        {"audit does not lead to the row"},
    ),
    "gap in the epochs": (
        f"update matins.occurrence set epoch = epoch + 1 where id = {NIGHT}",
        {"audit does not lead to the row"},
    ),
    "not over": (
        f"""update matins.occurrence
               set state = 'running', closed_at = null, total = null, succeeded = null, failed = null, dead = null,
                   cancelled = null
             where id = {KILLED}""",
        {"not over", "audit does not lead to the row"},
    ),
}


@pytest.mark.parametrize("fault", UNSEEN)
async def test_what_is_left_is_judged(fault: str, planting: Session) -> None:
    planted, expected = UNSEEN[fault]
    await planting.execute("set local session_replication_role = replica")
    await planting.execute(planted)
    assert await rules(planting) == expected


async def test_parked_messages_and_dead_rows_belong_together(planting: Session, night: Night) -> None:
    await planting.execute("set local session_replication_role = replica")
    await planting.execute("update matins.ledger set account = 'ghost' where state = 'dead'")
    found = await rules(planting, night.broker_url)
    assert found == {"message without its row", "dead without its parked message", "account without a row"}


# Put right again at once: what is left is good, and only the recorder knows.
AND_BACK = """
update matins.ledger set state = 'succeeded', epoch = epoch + 1, error_class = null, lease_until = null,
       finished_at = coalesce(finished_at, started_at)
 where account = 'a000001'
"""
WRITES = {
    "epoch lowered": (
        "update matins.ledger set epoch = epoch - 1 where account = 'a000001' and epoch > 1",
        {"epoch lowered"},
    ),
    "claim lowered": (
        f"""update matins.occurrence set epoch = epoch - 1 where id = {NIGHT};
            update matins.occurrence set epoch = epoch + 1 where id = {NIGHT}""",
        {"epoch lowered"},
    ),
    "end left": (
        f"""update matins.ledger set state = 'pending', epoch = epoch + 1, finished_at = null
             where account = 'a000001'; {AND_BACK}""",
        {"terminal state left", "no such move"},
    ),
    "end changed": (
        f"""update matins.ledger set state = 'failed', epoch = epoch + 1, error_class = 'x'
             where account = 'a000001'; {AND_BACK}""",
        {"terminal state left", "no such move"},
    ),
    "occurrence opened without a re-run": (
        f"""update matins.occurrence set state = 'running' where id = {KILLED};
            update matins.occurrence set state = 'partial' where id = {KILLED}""",
        {"terminal state left"},
    ),
    "occurrence taken without an epoch": (
        f"update matins.occurrence set claimed_by = 'another' where id = {NIGHT}",
        {"taken without an epoch"},
    ),
    "two active at once": (
        f"""set local session_replication_role = replica;
            update matins.occurrence set state = 'running' where id = {NIGHT};
            set local session_replication_role = origin;
            update matins.occurrence set state = 'claimed', epoch = 1, claimed_by = 'x', claimed_at = now()
             where id = {NEXT};
            set local session_replication_role = replica;
            update matins.occurrence set state = 'expected', epoch = 0, claimed_by = null, claimed_at = null
             where id = {NEXT};
            update matins.occurrence set state = 'succeeded' where id = {NIGHT}""",
        {"two active at once"},
    ),
    "total changed": (
        f"""update matins.occurrence set total = total + 1, succeeded = succeeded + 1 where id = {NIGHT};
            update matins.occurrence set total = total - 1, succeeded = succeeded - 1 where id = {NIGHT}""",
        {"total changed"},
    ),
    "generation skipped": (
        f"""update matins.occurrence set generation = 4 where id = {NIGHT};
            update matins.occurrence set generation = 2 where id = {NIGHT}""",
        {"generation out of order"},
    ),
    "state moved without the epoch": (
        """insert into matins.ledger (occurrence_id, scheduled_at, account, position)
           select occurrence_id, scheduled_at, 'x', 1 from matins.ledger limit 1;
           update matins.ledger set state = 'succeeded', finished_at = clock_timestamp() where account = 'x';
           set local session_replication_role = replica;
           delete from matins.ledger where account = 'x'""",
        {"state moved without the epoch"},
    ),
    "tries taken back": (
        """update matins.ledger set attempts = attempts - 1 where account = 'a000001';
           update matins.ledger set attempts = attempts + 1 where account = 'a000001'""",
        {"tries taken back"},
    ),
    "two tries at once": (
        """update matins.ledger set attempts = attempts + 2 where account = 'a000001';
           set local session_replication_role = replica;
           update matins.ledger set attempts = attempts - 2 where account = 'a000001'""",
        {"two tries at once"},
    ),
    "row deleted": (
        """create temporary table kept as select * from matins.ledger where account = 'a000001';
           delete from matins.ledger where account = 'a000001';
           insert into matins.ledger select * from kept""",
        {"row deleted"},
    ),
}


@pytest.mark.parametrize("fault", WRITES)
async def test_what_was_written_is_judged(fault: str, planting: Session) -> None:
    planted, expected = WRITES[fault]
    await planting.execute(planted)
    assert await rules(planting) == expected


async def test_sessions_that_are_left_are_judged(session: Session, night: Night) -> None:
    url = with_path(night.administrator_url, night.database)
    async with AsyncExitStack() as stack:
        product = await connect(url, name="matins worker left", timeout=timedelta(seconds=5))
        stack.push_async_callback(product.close)
        assert await rules(session, sessions=1) == set()
        assert await rules(session) == {"connection left"}
        assert await rules(session, at_rest=False) == set(), "while the fleet is at work it has its connections"
        await product.execute("begin; select 1")
        assert await rules(session, sessions=1) == {"session left in a transaction"}
        await product.execute("rollback; select pg_advisory_lock(7)")
        assert await rules(session, sessions=1) == {"lock left"}


async def test_messages_that_are_left_are_judged(session: Session, night: Night) -> None:
    row = await session.fetchrow(f"select * from matins.occurrence where id = {NIGHT}")
    assert row is not None
    message = WorkMessage(
        job="night",
        occurrence_id=row["id"],
        scheduled_at=row["scheduled_at"],
        accounts=("nobody",),
        generation=1,
        published_at=datetime.now(UTC),
    )
    async with await aio_pika.connect(night.broker_url) as connection, connection.channel() as channel:
        for place, body, expected in (
            ("work.night", encode(message), "message left"),
            ("delay.600s", encode(message), "message left"),
            ("dead.accounted", encode(message), "message left"),
            ("dead.parked", encode(message), "message without its row"),
            ("dead.parked", b"not a message", "message without its row"),
        ):
            queue = await channel.get_queue(f"{night.prefix}.{place}", ensure=False)
            await channel.default_exchange.publish(aio_pika.Message(body), queue.name)
            assert await rules(session, night.broker_url) == {expected}, place
            assert await rules(session, night.broker_url, at_rest=False) == {expected} - {"message left"}
            if expected == "message without its row":
                assert await rules(session, night.broker_url, strangers=1) == set(), "the test has sent it itself"
            for one in [taken async for taken in take(queue)]:
                if one != body:
                    await channel.default_exchange.publish(aio_pika.Message(one), queue.name)


async def take(queue: aio_pika.abc.AbstractQueue) -> AsyncIterator[bytes]:
    while message := await queue.get(fail=False):
        await message.ack()
        yield message.body


async def test_a_secret_in_a_log_is_told_without_being_repeated(session: Session, tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text('{"event": "starting"}\n{"event": "connecting to amqp://matins:canary-4711@broker"}\n')
    found = await check(session, logs=[log], secrets=["canary-4711"])
    assert [(one.invariant, one.rule, one.row, one.seen) for one in found] == [
        ("I13", "secret told", "worker.log", "lines [2]")
    ]


def test_a_process_that_is_left_is_told() -> None:
    prefix = unique_name()
    assert list(processes_left(prefix)) == []
    with subprocess.Popen(
        [sys.executable, "-c", "print('here', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"MATINS_PREFIX": prefix},
    ) as left:
        # Before it runs its environment may not be there to read yet.
        assert left.stdout is not None
        assert left.stdout.readline() == b"here\n"
        assert [pid for pid, _ in processes_left(prefix)] == [left.pid]
        left.communicate(b"\n")


def test_what_a_provider_did_is_compared_with_the_rows() -> None:
    succeeded = [("charge:then", "a"), ("charge:then", "b"), ("charge:then", "c")]
    effects = {("charge:then", "a"): 1, ("charge:then", "b"): 2, ("charge:then", "d"): 1}
    assert [(one.rule, one.row) for one in judge_outside(succeeded, effects)] == [
        ("effect missing", "charge:then 'c'"),
        ("second effect", "charge:then 'b'"),
    ]
