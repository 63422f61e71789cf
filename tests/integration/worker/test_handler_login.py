"""A handler with a database login of its own: effect and ledger commit together, and nothing else is in its reach."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import anyio
import asyncpg
import orjson
import psycopg
import pytest

from schemas.privileges import HANDLER
from shared.calls import AccountCall, ChunkCall, GiveUp, Handled, NothingToDo, OutsideCall, RetryLater
from shared.close import close
from shared.health import Health
from shared.job import Job, Outside, PerAccount, SetBased, hours
from shared.postgres import DatabaseError, InsufficientPrivilege, Session
from shared.restore import DatabaseWentBack, Witness
from shared.settings import FaultySettings
from tests.support.fleet import closed_state, deploy, prepared_for, running_publisher, running_worker, send, until
from tests.support.ledger import DECISIONS, DUE, job_with, ledger, running_occurrence, session_on
from tests.support.logins import MAPPED, NAMES, PASSWORD, as_login, login_of, make_logins, with_login
from tests.support.refusals import forbidden, refused, relations
from tests.support.servers import unique_name
from trigger.database_roles import plan_for, prepare_roles
from worker.invoke import Invocation
from worker.logins import Logins
from worker.occurrences import WorkOccurrence
from worker.savepoints import RoleUnavailable
from worker.service import Worker
from worker.settle import Fenced
from worker.transaction import Batch, Runner
from worker.turns import START_ROWS

INSERT = "insert into effect (account) values ($1)"
KEPT = ("state", "epoch", "attempts", "starts", "isolated", "nothing_to_do", "error_class", "error", "worker", "result")
NULLS = ("not_before", "published_at", "lease_until", "started_at", "finished_at", "trace_context")


@dataclass(frozen=True, slots=True)
class Place:
    """A database in which a login has a table of its own, and `jobs` name it."""

    url: str
    login: str
    session: Session

    def login_url(self) -> str:
        """Give the login's own address."""
        return with_login(self.url, self.login)

    async def declare(self, *jobs: Job) -> None:
        """Do what migrate does for these jobs."""
        prepared = await prepare_roles(self.session, plan_for(NAMES, {job.name: job for job in jobs}))
        assert prepared.asked == []

    def settings(self) -> dict[str, str]:
        """Give what a worker is set to, as its own least-privileged login."""
        return {"database_roles": MAPPED, f"login_url_{self.login}": self.login_url()}

    async def effects(self) -> list[str]:
        """Give the accounts that had an effect."""
        return [row["account"] for row in await self.session.fetch("select account from effect order by account")]


@pytest.fixture
async def place(database_url: str) -> AsyncIterator[Place]:
    """A place without jobs."""
    login = f"{unique_name()}_invoice"
    async with session_on(database_url) as session:
        await make_logins(session)
        await session.execute(f"create role {login} login password '{PASSWORD}'")
        await session.execute(f"create table effect (account text); grant select, insert on effect to {login}")
        yield Place(database_url, login, session)
        await session.execute(f"drop owned by {login}; drop role {login}")


async def work(call: AccountCall) -> None:
    await call.connection.execute(INSERT, call.account)
    match call.account.partition("-")[0]:
        case "done":
            raise NothingToDo
        case "hopeless":
            raise GiveUp("no tax id")
        case "later":
            raise RetryLater(after=timedelta(minutes=7))
        case "sql":
            await call.connection.execute("select 1 / 0")


async def roll_up(call: ChunkCall) -> Handled:
    await call.connection.execute("insert into effect select unnest($1::text[])", list(call.accounts))
    return Handled(done=call.accounts[:-1], failed={call.accounts[-1]: "no meter"})


def runner_of(job: Job) -> Runner:
    function = job.handler.handler
    assert callable(function)
    return Runner(job, Invocation(function, job.handler.timeout, anyio.CapacityLimiter(4)), "worker-1", lambda: 0.0)


def batch_of(occurrence: WorkOccurrence, *accounts: str) -> Batch:
    return Batch(occurrence, 1, accounts, DUE)


ACCOUNTS = ("a", "done-1", "hopeless-1", "later-1", "sql-1", "z")


async def test_its_rows_end_as_those_of_the_workers_own_login_do(place: Place) -> None:
    own, usual = (
        job_with(PerAccount(work, login=login, chunk_size=10), name=name, max_tries=3)
        for login, name in ((place.login, "own"), (None, "usual"))
    )
    await place.declare(own, usual)
    ended = {}
    for job, url in ((own, place.login_url()), (usual, place.url)):
        occurrence = await running_occurrence(place.session, job, ACCOUNTS)
        async with session_on(url) as session:
            ran = await runner_of(job).run(session, batch_of(occurrence, *ACCOUNTS), trace_context="t")
        rows = await ledger(place.session, occurrence.id)
        kept = {account: {name: row[name] for name in KEPT} for account, row in rows.items()}
        unset = {account: [name for name in NULLS if row[name] is None] for account, row in rows.items()}
        again = [
            (one.account, one.epoch, one.wait, one.isolated) for one in sorted(ran.again, key=lambda one: one.account)
        ]
        ended[job.name] = (kept, unset, ran.outcomes, again)
    assert ended["own"] == ended["usual"]
    assert await place.effects() == ["a", "a", "z", "z"]


async def test_its_accounts_wait_for_the_occurrences_before_as_those_of_the_workers_own_login_do(place: Place) -> None:
    beside = replace(DECISIONS, overlap="allow", overlap_by="account")
    own, usual = (
        replace(job_with(PerAccount(work, login=login, chunk_size=10), name=name), decisions=beside)
        for login, name in ((place.login, "own"), (None, "usual"))
    )
    await place.declare(own, usual)
    ended = {}
    for job, url in ((own, place.login_url()), (usual, place.url)):
        before = await running_occurrence(place.session, job, ["a", "b"])
        after = await running_occurrence(place.session, job, ["a", "b", "c"], scheduled_at=DUE + timedelta(days=1))
        runner, ran = runner_of(job), []
        async with session_on(url) as session, session_on(place.url) as other:
            ran.append(await runner.run(session, batch_of(before, "a")))
            ran.append(await runner.run(session, batch_of(after, "a", "b", "c")))
            await place.session.execute("update matins.ledger set not_before = null")
            await other.execute(f"begin; select from matins.account_lock where job = '{job.name}' for update")
            ran.append(await runner.run(session, batch_of(before, "b")))
            await other.execute("rollback")
            await place.session.execute("update matins.ledger set not_before = null")
            ran.append(await runner.run(session, batch_of(before, "b")))
            ran.append(await runner.run(session, batch_of(after, "b")))
        ended[job.name] = [{account: one.result.value for account, one in each.outcomes.items()} for each in ran]
    assert ended["own"] == ended["usual"]
    assert ended["own"] == [
        {"a": "succeeded"},
        {"b": "blocked", "a": "succeeded", "c": "succeeded"},
        {"b": "blocked"},
        {"b": "succeeded"},
        {"b": "succeeded"},
    ]


async def test_a_start_asks_the_same_as_the_workers_own(place: Place) -> None:
    own = " ".join(line for line in START_ROWS.splitlines() if not line.startswith("--")).rstrip("; ")
    source = await place.session.fetchval("select prosrc from pg_proc where oid = 'matins.start'::regproc")
    asked = own.replace("coalesce($5::timestamptz, clock_timestamp())", "clock_timestamp()")
    assert " ".join(asked.split()) in " ".join(source.split()), "change the function in a new migration too"


async def test_a_chunk_is_settled_with_its_one_statement(place: Place) -> None:
    job = job_with(SetBased(roll_up, login=place.login), name="own", max_tries=1)
    await place.declare(job)
    occurrence = await running_occurrence(place.session, job, ["a", "b", "c"])
    async with session_on(place.login_url()) as session:
        await runner_of(job).run(session, batch_of(occurrence, "a", "b", "c"))
    rows = await ledger(place.session, occurrence.id)
    assert [row["state"] for row in rows.values()] == ["succeeded", "succeeded", "failed"]


async def test_a_start_that_another_has_overtaken_settles_nothing_and_has_no_effect(place: Place) -> None:
    async def overtaken(call: AccountCall) -> None:
        await call.connection.execute(INSERT, call.account)
        await call.connection.execute(
            "select matins.settle_rows($1, $2, array['a'], array[0::bigint], "
            "array['succeeded'], array[1], array[interval '0'], array[null], array[null], array[false], "
            "clock_timestamp(), 'me', clock_timestamp(), '')",
            occurrence.id,
            occurrence.scheduled_at,
        )

    job = job_with(PerAccount(overtaken, login=place.login), name="own")
    await place.declare(job)
    occurrence = await running_occurrence(place.session, job, ["a"])
    async with session_on(place.login_url()) as session:
        with pytest.raises(Fenced):
            await runner_of(job).run(session, batch_of(occurrence, "a"))
        missed = await runner_of(job).run(session, replace(batch_of(occurrence, "a"), generation=2))
    assert (missed.missed, await place.effects()) == (("a",), [])
    assert (await ledger(place.session, occurrence.id))["a"]["state"] == "pending"


async def test_nothing_else_is_in_its_reach(place: Place) -> None:
    job, other = job_with(PerAccount(work, login=place.login), name="own"), job_with(PerAccount(work), name="other")
    await place.declare(job, other)
    mine = await running_occurrence(place.session, job, ["a"])
    others = await running_occurrence(place.session, other, ["a"])
    await place.session.execute("create table secret (); revoke all on secret from public")
    arguments = f"{others.id}, '{others.scheduled_at}'"
    ticket = orjson.dumps({"occurrence_id": others.id, "scheduled_at": others.scheduled_at, "epoch": 0, "account": "a"})
    arrays = "'{a}', '{0}', '{succeeded}', '{1}', '{0}', '{x}', '{x}', '{f}', now(), 'w', now(), ''"
    statements = [
        f"select matins.start({arguments}, '{{a}}', 1)",
        f"select matins.settle_rows({arguments}, {arrays})",
        f"select matins.settle('{ticket.decode()}')",
        "select matins.start(null, now(), '{a}', 1)",
        f"select matins.start_in_turn({arguments}, '{{a}}', 1)",
        "select matins.refuse_others_occurrence(1)",
        "select matins.ensure_ledger_partition(now())",
        "select * from secret",
        "create table matins.mine ()",
        "create table public.mine ()",
        "set role postgres",
        *(f"set role {NAMES.of(group)}" for group in ("matins_trigger", "matins_worker", "matins_reader")),
        f"set session authorization {NAMES.of('matins_worker')}",
        "select pg_read_file('/etc/hostname')",
    ]
    async with session_on(place.login_url()) as session:
        rows = await relations(place.session)
        for row in rows:
            statements += forbidden({}, row["relation"], row["columns"], is_sequence=row["is_sequence"])
        assert [one for one in statements if not await refused(session, one)] == []
        assert await session.fetchval("select count(*) from matins.start($1, $2, array['a'], 1)", mine.id, DUE) == 1
    assert len(statements) > 300
    # What its source is read under is no way in either: the session stays the trigger's.
    async with session_on(as_login(place.url, "trigger")) as trigger:
        assert "is not that of the job" in await refused(
            trigger, f"set local role {place.login}; select matins.start({mine.id}, '{DUE}', '{{a}}', 1)"
        )


async def test_a_login_that_is_not_recorded_holds_its_job_and_charges_nobody(place: Place) -> None:
    job = job_with(PerAccount(work, login=place.login), name="own")
    await place.declare(job)
    occurrence = await running_occurrence(place.session, job, ["a"])
    await place.session.execute("delete from matins.handler_login")
    async with session_on(place.login_url()) as session:
        with pytest.raises(RoleUnavailable, match="is not that of the job of occurrence"):
            await runner_of(job).run(session, batch_of(occurrence, "a"))
    row = (await ledger(place.session, occurrence.id))["a"]
    assert (row["state"], row["epoch"], row["attempts"]) == ("pending", 0, 0)


async def test_what_a_login_settles_can_be_read_and_closed(place: Place) -> None:
    job = job_with(PerAccount(work, login=place.login), name="own")
    await place.declare(job)
    occurrence = await running_occurrence(place.session, job, ["a", "b", "c"])
    ends = (
        "array['a', 'b', 'c'], array[0, 0, 0], array['succeeded', 'failed', 'pending'], array[1, 1, 0],"
        " array[null, null, interval '200000 years'], array[null, repeat('c', 9999), null],"
        " array[null, repeat('e', 9999), null], array[false, false, false]"
    )
    async with session_on(place.login_url()) as session:
        for began in ("-infinity", "infinity"):
            rows = await session.fetch(
                f"select account from matins.settle_rows($1, $2, {ends}, '{began}', repeat('w', 9999), '{began}', '')",
                occurrence.id,
                occurrence.scheduled_at,
            )
            assert len(rows) == (3 if began == "-infinity" else 0)
    await place.session.execute("update matins.ledger set state = 'cancelled', finished_at = now() where account = 'c'")
    closed = await close(place.session, occurrence.id, by="closer")
    assert closed is not None
    assert closed.report.durations is not None
    assert closed.report.durations.longest < 60
    kept = (await ledger(place.session, occurrence.id))["b"]
    assert [len(kept[name]) for name in ("error_class", "error", "worker")] == [200, 2000, 100]
    assert kept["published_at"] <= kept["finished_at"]
    wait = (await ledger(place.session, occurrence.id))["c"]["not_before"] - kept["finished_at"]
    assert timedelta(days=29) < wait < timedelta(days=31)


async def test_a_login_that_another_deployment_takes_away_meanwhile_charges_nobody(place: Place) -> None:
    async def work_meanwhile(call: AccountCall) -> None:
        await call.connection.execute(INSERT, call.account)
        await place.session.execute("delete from matins.handler_login")

    job = job_with(PerAccount(work_meanwhile, login=place.login), name="own")
    await place.declare(job)
    occurrence = await running_occurrence(place.session, job, ["a"])
    async with session_on(place.login_url()) as session:
        with pytest.raises(RoleUnavailable, match="is not that of the job of occurrence"):
            await runner_of(job).run(session, batch_of(occurrence, "a"))
    row = (await ledger(place.session, occurrence.id))["a"]
    assert (row["state"], row["epoch"], row["attempts"], await place.effects()) == ("pending", 0, 0, [])


async def test_a_job_that_has_changed_its_login_takes_the_rights_from_the_old_one(place: Place) -> None:
    await place.declare(job_with(PerAccount(work, login=place.login), name="own"))
    await place.declare(job_with(PerAccount(work), name="other"))
    async with session_on(place.login_url()) as session:
        assert "is not that of the job" in await refused(session, "select matins.start(1, now(), '{a}', 1)")
        await place.declare(job_with(PerAccount(work), name="own"))
        assert "permission denied" in await refused(session, "select matins.start(1, now(), '{a}', 1)")
    assert HANDLER not in [row["rolname"] for row in await place.session.fetch("select rolname from pg_roles")]


def test_every_login_without_an_address_is_named_at_once() -> None:
    jobs = [job_with(PerAccount(work, login=f"login_{name}"), name=name) for name in ("one", "two")]
    prepared = prepared_for("worker", jobs, "postgresql://x/y", "amqp://x/", "p", login_url_login_two="mysql://x")
    with pytest.raises(FaultySettings) as raised:
        Worker(prepared, Health())
    one, two = str(raised.value).split("\n")
    assert one.startswith("MATINS_LOGIN_URL_LOGIN_ONE (or MATINS_LOGIN_URL_LOGIN_ONE_FILE) is not set")
    assert two.startswith("MATINS_LOGIN_URL_LOGIN_TWO: valid is postgres")


Code = Callable[[OutsideCall, asyncpg.Connection], Any]


def outside_job(place: Place, code: Code, **more: Any) -> Job:
    """Declare an outside call whose code has a connection of its own, as one on any other driver has."""

    async def handler(call: OutsideCall) -> str:
        connection = await asyncpg.connect(place.login_url(), timeout=20)
        try:
            await code(call, connection)
        finally:
            await connection.close()
        return "unused"

    return job_with(Outside(handler, key_valid_for=hours(24), login=place.login, **more), name="own", max_tries=2)


async def settle_with_effect(call: OutsideCall, connection: asyncpg.Connection) -> None:
    async with connection.transaction():
        await connection.execute(INSERT, call.account)
        await connection.execute("select matins.settle($1, $2)", call.ticket, '{"invoice": 1}')


async def settle_and_raise(call: OutsideCall, connection: asyncpg.Connection) -> None:
    await settle_with_effect(call, connection)
    message = "behind the commit"
    raise ValueError(message)


async def settle_and_linger(call: OutsideCall, connection: asyncpg.Connection) -> None:
    await settle_with_effect(call, connection)
    await asyncio.sleep(1)
    await connection.execute(INSERT, "lingered")


async def settle_stale(call: OutsideCall, connection: asyncpg.Connection) -> None:
    stale = orjson.loads(call.ticket) | {"epoch": 0}
    async with connection.transaction():
        await connection.execute(INSERT, call.account)
        await connection.execute("select matins.settle($1)", orjson.dumps(stale).decode())


@pytest.mark.parametrize(
    ("code", "effects", "state"),
    [
        (settle_with_effect, ["a"], "succeeded"),
        (settle_and_raise, ["a"], "succeeded"),
        (settle_and_linger, ["a", "lingered"], "succeeded"),
        (settle_stale, [], "failed"),
    ],
)
async def test_code_on_any_driver_commits_its_effect_with_its_ledger_row(
    place: Place, broker_url: str, prefix: str, code: Code, effects: list[str], state: str
) -> None:
    job = outside_job(place, code)
    await place.declare(job)
    worker_url = as_login(place.url, "worker")
    settings = place.settings() | {"outside_lease": "400ms", "resend_after": "1s"}
    await deploy(prepared_for("worker", [job], place.url, broker_url, prefix))
    prepared = prepared_for("worker", [job], worker_url, broker_url, prefix, **settings)
    async with running_publisher(prepared) as publisher, running_worker(prepared) as worker:
        occurrence = await running_occurrence(place.session, job, ["a"])
        job_again = replace(job)
        await send(publisher, prepared, job_again, occurrence, ["a"])

        async def ended() -> object:
            row = (await ledger(place.session, occurrence.id))["a"]
            if state == "failed" and row["attempts"] == 1 and row["state"] == "pending":
                return row
            return row if row["state"] == state else None

        row = await until(ended)
        if state == "succeeded":
            assert await closed_state(place.session, occurrence.id) == "succeeded"
            assert (row["attempts"], row["result"], row["starts"]) == (1, {"invoice": 1}, 0)
        else:
            assert "is no longer this call's" in row["error"]

        async def effected() -> object:
            return await place.effects() == effects

        await until(effected)
        assert worker.logins.problem is None


async def test_blocking_code_on_psycopg_commits_its_effect_with_its_ledger_row(
    place: Place, broker_url: str, prefix: str
) -> None:
    def handler(call: OutsideCall) -> str:
        with psycopg.connect(place.login_url(), connect_timeout=20) as connection:
            connection.execute("insert into effect (account) values (%s)", (call.account,))
            if call.account == "b":
                raise ValueError("before the settle")
            connection.execute("select matins.settle(%s, %s)", (call.ticket, '{"invoice": 1}'))
        return "unused"

    job = job_with(Outside(handler, key_valid_for=hours(24), login=place.login), name="own", max_tries=1)
    await place.declare(job)
    await deploy(prepared_for("worker", [job], place.url, broker_url, prefix))
    prepared = prepared_for("worker", [job], as_login(place.url, "worker"), broker_url, prefix, **place.settings())
    async with running_publisher(prepared) as publisher, running_worker(prepared):
        occurrence = await running_occurrence(place.session, job, ["a", "b"])
        for account in ("a", "b"):
            await send(publisher, prepared, job, occurrence, [account])
        assert await closed_state(place.session, occurrence.id) == "partial"
        rows = await ledger(place.session, occurrence.id)
    assert (rows["a"]["state"], rows["a"]["attempts"], rows["a"]["result"]) == ("succeeded", 1, {"invoice": 1})
    assert (rows["b"]["state"], rows["b"]["error"]) == ("failed", "before the settle")
    assert await place.effects() == ["a"]


async def settled_with_effect(session: Session, ticket: str) -> None:
    async with session.transaction():
        await session.execute(INSERT, "undone")
        await session.execute("select matins.settle($1)", ticket)


async def test_a_ticket_settles_once_and_another_workers_ticket_undoes_the_effect(place: Place) -> None:
    job = outside_job(place, settle_with_effect)
    await place.declare(job)
    occurrence = await running_occurrence(place.session, job, ["a", "b"])
    await place.session.execute(
        "update matins.ledger set state = 'running', epoch = 5, lease_until = now() where occurrence_id = $1",
        occurrence.id,
    )
    row = {"occurrence_id": occurrence.id, "scheduled_at": DUE, "epoch": 5, "account": "a"}
    async with session_on(place.login_url()) as session:
        ticket = orjson.dumps(row).decode()
        await session.execute("select matins.settle($1, nothing_to_do => true)", ticket)
        for again in (ticket, orjson.dumps(row | {"account": "b", "epoch": 4}).decode()):
            with pytest.raises(DatabaseError) as raised:
                await settled_with_effect(session, again)
            assert raised.value.sqlstate == "MF001"
        with pytest.raises(DatabaseError, match="more than 4 KiB"):
            await session.execute(
                "select matins.settle($1, $2)", orjson.dumps(row | {"account": "b"}).decode(), {"x": "y" * 9000}
            )
        unreadable = ("1e400", "[" * 70 + "]" * 70, '{"x": [-1e309]}')
        for result in unreadable:
            with pytest.raises(DatabaseError, match="no number beyond"):
                await session.execute(
                    f"select matins.settle($1, '{result}')", orjson.dumps(row | {"account": "b"}).decode()
                )
        with pytest.raises(InsufficientPrivilege):
            await session.execute("select matins.settle('{}')")
    assert await place.effects() == []
    rows = await ledger(place.session, occurrence.id)
    assert (rows["a"]["state"], rows["a"]["nothing_to_do"], rows["b"]["state"]) == ("succeeded", True, "running")


async def test_a_worker_names_a_role_and_a_login_that_it_cannot_use(
    place: Place, broker_url: str, prefix: str, role: str
) -> None:
    jobs = [
        job_with(PerAccount(work, login=place.login), name="own"),
        job_with(PerAccount(work, role=role), name="in-a-role"),
        job_with(PerAccount(work, role=f"{role}_absent"), name="absent"),
    ]
    await deploy(prepared_for("worker", jobs, place.url, broker_url, prefix))
    await place.declare()
    wrong = place.settings() | {f"login_url_{place.login}": as_login(place.url, "reader")}
    prepared = prepared_for("worker", jobs, as_login(place.url, "worker"), broker_url, prefix, **wrong)
    async with running_worker(prepared) as worker:
        problem = str(worker.logins.problem)
        assert f"role {role} cannot be taken: it is not granted (named by in-a-role)" in problem
        assert f"role {role}_absent does not exist (named by absent)" in problem
        assert f"login {place.login} is not recorded as that of job own: run migrate" in problem
        assert f"login {place.login}: its address logs in as {login_of('reader')}" in problem
        assert str(worker.health.ready()["roles"]).startswith(f"role {role} cannot be taken")
        await place.session.execute(f"grant {role} to {NAMES.of('matins_worker')}")
        await worker.beat_pass()
        assert f"role {role} " not in str(worker.logins.problem)
        await place.session.execute(f"revoke {role} from {NAMES.of('matins_worker')}")


async def test_a_login_begins_nothing_on_a_database_that_was_put_back(place: Place) -> None:
    job = job_with(PerAccount(work, login=place.login), name="own")
    prepared = prepared_for("worker", [job], as_login(place.url, "worker"), "amqp://x/", "p", **place.settings())
    await place.declare(job)
    await place.session.execute("insert into matins.environment (name) values ('test')")
    logins, beside = Logins(prepared, {job.name: job}), prepared.database(1)
    for pools in (logins, beside):
        await pools.open()
    logins.examine_new(beside, Witness("a process that is gone", DUE).examine)
    pool = logins.pool(job)
    assert pool is not None
    with pytest.raises(DatabaseWentBack, match="it remembers none"):
        async with pool.session():
            pass
    assert "put back" in await place.session.fetchval("select held_reason from matins.environment")
    for pools in (logins, beside):
        await pools.close()
