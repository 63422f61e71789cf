"""No secret is ever said: canaries lie in every secret setting, and are looked for in all that a bad night leaves."""

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import urlopen

import anyio
import pytest

from examples.servers.find import Broker
from shared.postgres import Session
from tests.support.broker import manage, virtual_host_of
from tests.support.canaries import Canary
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.nights import closed_occurrence
from tests.support.otlp import Collector
from tests.support.processes import Deployment, Service, deployment
from tests.support.servers import execute, unique_name

pytestmark = [pytest.mark.drill, pytest.mark.timeout(180)]

JOBS = """
import asyncpg
from urllib.parse import quote, unquote, urlsplit

from shared.job import GeneratedAccounts, Handled

URLS = [Path(os.environ[f"MATINS_{name}_URL_FILE"]).read_text().strip() for name in ("DATABASE", "BROKER")]
QUOTED = [urlsplit(url).password for url in URLS] + [os.environ["OTEL_EXPORTER_OTLP_HEADERS"]]
PLAIN = [unquote(one) for one in QUOTED]


def saying(call_account):
    # What authors, libraries and servers put into the texts of their errors.
    url, quoted, plain = (forms[int(call_account[1:]) % len(forms)] for forms in (URLS, QUOTED, PLAIN))
    return [
        f"cannot connect to {url}",
        f"the password {quoted} was refused",
        f"the password {plain!r} was refused",
        f"host=localhost password={plain} user=me",
        f"{{'url': {url!r}, 'password': {plain!r}}}",
        "x" * 1990 + plain + "x" * 5000,
        f"{url}\\n{plain}\\0",
    ][int(call_account[1:]) % 7]


async def one(call):
    said = saying(call.account)
    if call.account == "a000000":
        raise RetryLater(said, after=seconds(0.2))
    if call.account == "a000001":
        raise GiveUp(said)
    if call.account == "a000002":
        raise NothingToDo(said)
    if call.account == "a000003":
        await call.connection.execute("select cast($1::text as int)", said)
    if call.account == "a000004":
        await call.connection.execute(f"raise '{said.replace(chr(39), '')}'")
    if call.account == "a000005":
        try:
            raise KeyError(said)
        except KeyError as error:
            raise type("Password" + PLAIN[0], (Exception,), {})(said) from error
    raise ValueError(said)


async def chunk(call):
    return Handled(done=(), failed={account: saying(account) for account in call.accounts})


async def outside(call):
    raise ConnectionError(saying(call.account))


async def numbers(call):
    yield AccountAt("a000000", "0")
    raise OSError(saying("a000000"))


jobs = [
    nightly("one", PerAccount(one), max_tries=2),
    nightly("chunk", SetBased(chunk), max_tries=1),
    nightly("outside", Outside(outside, key_valid_for=hours(24)), max_tries=1),
    nightly("source", PerAccount(effect), accounts=GeneratedAccounts(numbers)),
    nightly("absent", PerAccount(f"{__name__}_absent:handle")),
]
"""
ABSENT = """
from {module} import PLAIN, URLS
raise RuntimeError(f"{{URLS}} {{PLAIN}}")
"""
ACCOUNTS = 14
HOSTS = {
    "database_url": "postgresql://127.0.0.1:1/matins",
    "broker_url": "amqp://127.0.0.1:1/matins",
    "management_url": "http://127.0.0.1:1",
}
SOUND = (
    ("trigger", "check", "--json"),
    ("trigger", "status", "--json"),
    ("trigger", "occurrences", "--json"),
    ("trigger", "doctor"),
    ("trigger", "doctor", "--json"),
    ("trigger", "migrate", "--json"),
    ("worker", "try", "one", "--account", "a000005"),
)
LOCKED_OUT = (
    ("trigger", "status", "--json"),
    ("trigger", "doctor", "--json"),
    ("trigger", "migrate"),
    ("trigger", "fire", "one", "--reason", "test"),
)
MISTYPED = (
    ("trigger", "check", "--json"),
    ("trigger", "status"),
    ("trigger", "doctor", "--json"),
    ("trigger", "serve"),
    ("worker", "serve"),
)


@dataclass
class Planted:
    """The canaries of a deployment, and the files that they lie in."""

    folder: Path
    user: str
    addresses: dict[str, str]
    canaries: dict[str, Canary]

    def write(self, *, lock_out: bool = False) -> dict[str, str]:
        """Write the addresses, with other passwords for `lock_out`; give the settings that name the files."""
        settings: dict[str, str] = {}
        for name, url in self.addresses.items():
            canary = self.canaries[f"wrong {name}" if lock_out else name]
            address = urlsplit(url)
            netloc = f"{self.user}:{canary.quoted}@{address.hostname}:{address.port}"
            (self.folder / name).write_text(address._replace(netloc=netloc).geturl())
            settings |= {name: "", f"{name}_file": str(self.folder / name)}
        return settings

    def mistyped(self, marks: str) -> list[dict[str, str]]:
        """Write passwords with marks that should be percent-encoded, and give the settings for each mark."""
        found = []
        for mark in marks:
            wrong = Canary(f"mistyped{ord(mark)}")
            self.canaries[wrong.name] = wrong
            settings = {}
            for name, url in HOSTS.items():
                path = self.folder / f"{name}{ord(mark)}"
                path.write_text(url.replace("://", f"://{self.user}:{wrong.pieces[0]}{mark}{wrong.pieces[1]}@"))
                settings[f"{name}_file"] = str(path)
            found.append(settings)
        return found

    def found_in(self, text: str) -> set[str]:
        """Give the secrets that a text holds, whatever its case."""
        low = text.lower()
        forms = {form for canary in self.canaries.values() for form in canary.forms(self.user)}
        return {form for form in forms if form.lower() in low}


@contextmanager
def broker_user(broker: Broker, url: str, name: str, password: str) -> Iterator[None]:
    manage(broker, "PUT", f"/api/users/{name}", {"password": password, "tags": "administrator"})
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    manage(broker, "PUT", f"/api/permissions/{virtual_host_of(url)}/{name}", everything)
    try:
        yield
    finally:
        manage(broker, "DELETE", f"/api/users/{name}")


@pytest.fixture
async def planted(
    tmp_path: Path, administrator_url: str, database_url: str, broker: Broker, broker_url: str
) -> AsyncIterator[Planted]:
    """A user of both servers with a canary for a password on each."""
    addresses = {"database_url": database_url, "broker_url": broker_url, "management_url": broker.management_url or ""}
    names = [*addresses, *(f"wrong {name}" for name in addresses), "otlp"]
    canaries = {name: Canary(name.replace(" ", "").replace("_", "")) for name in names}
    # One user, and so one password, for both ways to the broker.
    canaries["management_url"] = canaries["broker_url"]
    made = Planted(tmp_path, unique_name(), addresses, canaries)
    password = made.canaries["database_url"].plain
    await execute(administrator_url, f"create role {made.user} superuser login password '{password}'")
    with broker_user(broker, broker_url, made.user, made.canaries["broker_url"].plain):
        yield made
    await execute(administrator_url, f"drop role {made.user}")


async def test_no_secret_is_said_whatever_goes_wrong(
    planted: Planted,
    tmp_path: Path,
    database_url: str,
    broker: Broker,
    broker_url: str,
    prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Collector() as collector:
        async with (
            deployment(tmp_path, database_url, broker_url, prefix, success_sampling="1", delays="1,5") as night,
            session_on(database_url) as session,
        ):
            headers = f"authorization=Bearer%20{planted.canaries['otlp'].quoted},x-kept=kept"
            given = planted.write() | {"log_level": "debug"}
            night.others |= collector.variables | {"OTEL_EXPORTER_OTLP_HEADERS": headers}
            for name, value in night.variables(**given).items():
                monkeypatch.setenv(name, value)
            night.declare(JOBS)
            await night.deploy(ACCOUNTS)
            night.settings |= given
            # It never comes to rest, and is looked at for nothing but what it says.
            night.judging.wanted = False
            services = await a_bad_night(night, session)
            said = [*of_processes(services), *await the_messages(broker, broker_url)]
            said += await an_outage(services, broker, session, planted)
            said += await the_tables(session)
            await every_command(night, planted)
            for service in services:
                service.terminate()
            assert [await service.ended() for service in services] == [0, 0]
            logs = {service.log.name: service.log.read_text(errors="replace") for service in night.services}
        exported = [repr(one) for one in (*collector.spans, *collector.points)]
    assert any("'matins.error'" in one or "failed=True" in one for one in exported), "there was something to look at"
    for name, text in [*logs.items(), *((one[:60], one) for one in (*said, *exported))]:
        assert not planted.found_in(text), f"{name}: {sorted(planted.found_in(text))}"
    assert all("***" in "".join(texts) for texts in (logs.values(), said, exported)), "what stands in their place"


async def a_bad_night(night: Deployment, session: Session) -> list[Service]:
    """Run a night in which every account fails, and says why with all the secrets there are."""
    (night.folder / f"{night.module}_absent.py").write_text(ABSENT.format(module=night.module))
    services = [night.start("trigger"), night.start("worker")]
    for job in ("one", "chunk", "outside"):
        await closed_occurrence(session, night, job)
    await services[0].logged("the accounts' source failed")
    return services


def of_processes(services: list[Service]) -> list[str]:
    """Give what every user of the machine may see of the processes, and what their own environment holds of files."""
    found = []
    for service in services:
        process = Path(f"/proc/{service.popen.pid}")
        found.append((process / "cmdline").read_bytes().decode(errors="replace"))
        environment = (process / "environ").read_bytes().decode(errors="replace").split("\0")
        found += [line for line in environment if line.startswith("MATINS_")]
    return found


async def the_messages(broker: Broker, url: str) -> list[str]:
    """Take every message that waits anywhere, with its properties and headers."""
    host, found = virtual_host_of(url), []
    taking = {"count": 1000, "ackmode": "ack_requeue_true", "encoding": "auto"}
    for queue in manage(broker, "GET", f"/api/queues/{host}"):
        found += [str(one) for one in manage(broker, "POST", f"/api/queues/{host}/{queue['name']}/get", taking)]
    assert found, "the job that no worker can run has messages waiting"
    return found


async def the_tables(session: Session) -> list[str]:
    """Give every row of ours, as text."""
    tables = await session.fetch(
        "select oid::regclass::text as name from pg_class where relnamespace = 'matins'::regnamespace"
        " and relkind in ('r', 'p')"
    )
    rows = [await session.fetch(f"select t::text as row from {table['name']} t") for table in tables]
    return [row["row"] for table in rows for row in table]


async def an_outage(services: list[Service], broker: Broker, session: Session, planted: Planted) -> list[str]:
    """Lock the services out of both servers, hear what they say of it, and let them in again."""
    planted.write(lock_out=True)
    ended = "select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = $1"
    addresses = [await service.health() for service in services]

    async def locked_out() -> list[str] | None:
        await session.fetchval(ended, planted.user)
        await anyio.to_thread.run_sync(drop_connections, broker, planted.user)
        pages = [await anyio.to_thread.run_sync(page, f"{address}/readyz") for address in addresses]
        return pages if all("refuses user" in one and "authentication failed" in one for one in pages) else None

    said: list[str] = await until(locked_out)
    said += [await anyio.to_thread.run_sync(page, f"{address}/livez") for address in addresses]
    planted.write()

    async def let_in() -> bool:
        pages = [await anyio.to_thread.run_sync(page, f"{address}/readyz") for address in addresses]
        # The worker never is ready: it lacks a handler.
        return not any("refuses user" in one or "authentication failed" in one for one in pages)

    await until(let_in)
    return said


def drop_connections(broker: Broker, user: str) -> None:
    for one in manage(broker, "GET", "/api/connections"):
        if one.get("user") == user:
            with suppress(HTTPError):
                manage(broker, "DELETE", f"/api/connections/{quote(one['name'], safe='')}")


def page(address: str) -> str:
    """Give a page, its status first."""
    try:
        with urlopen(address, timeout=5) as answer:  # noqa: S310 - the health endpoint of a service of the test's own
            return f"{answer.status} {answer.read()}"
    except HTTPError as error:
        return f"{error.code} {error.read()!r}"


async def every_command(night: Deployment, planted: Planted) -> None:
    """Run commands, and starts that are refused, a few at a time: in order, locked out, and with mistyped addresses."""
    identity = f"one:{night.night:%Y-%m-%dT%H:%MZ}"
    await all_ended([night.start(*words) for words in (*SOUND, ("trigger", "show", identity, "--accounts", "failed"))])
    planted.write(lock_out=True)
    await all_ended([night.start(*words) for words in LOCKED_OUT])
    planted.write()
    # With these marks the password ends early, and its rest would be taken for a host, a path or a query.
    ending = itertools.cycle(planted.mistyped("/#?"))
    refused = [night.start(*words, **settings) for words, settings in zip(MISTYPED, ending, strict=False)]
    # These are understood, and nobody answers there.
    understood = [night.start("trigger", "doctor", **settings) for settings in planted.mistyped("@:%")]
    assert set(await all_ended([*refused, *understood])) == {2}


async def all_ended(services: list[Service]) -> list[int]:
    return [await service.ended() for service in services]
