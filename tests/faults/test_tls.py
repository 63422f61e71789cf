"""TLS to both servers: the right certificate is accepted, any other is refused, and the refusal says why."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from examples.servers.find import Broker
from examples.servers.server import BrokerServer, DatabaseServer
from shared.broker_connection import close_connection, open_connection
from shared.broker_errors import BrokerUnavailable
from shared.migrate import migrate
from shared.postgres import DatabaseUnavailable, connect
from tests.support.broker import manage
from tests.support.certificates import Authority
from tests.support.encryption import encrypt_postgres, encrypt_rabbit, replace_rabbit, secured
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.nights import assert_night
from tests.support.processes import Deployment, Service, deployment

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

SECONDS = 5.0
JOBS = """
jobs = [nightly("night", PerAccount(effect))]
"""


@dataclass(frozen=True)
class Encrypted:
    """Both servers, and addresses that verify them."""

    authority: Authority
    postgres: DatabaseServer
    rabbit: BrokerServer

    def database(self, *, host: str = "localhost", **query: str | Path) -> str:
        return secured(self.postgres.url, host=host, query=query)

    def broker(self, *, host: str = "localhost", scheme: str = "amqps", **query: str | Path) -> str:
        return secured(self.rabbit.url, host=host, port=self.rabbit.tls_port, scheme=scheme, query=query)

    @property
    def database_url(self) -> str:
        return self.database(sslmode="verify-full", sslrootcert=self.authority.certificate)

    @property
    def broker_url(self) -> str:
        return self.broker(cafile=self.authority.certificate)


@pytest.fixture
async def encrypted(tmp_path: Path, throwaway_postgres: DatabaseServer, throwaway_rabbit: BrokerServer) -> Encrypted:
    """Two servers with certificates for `localhost`."""
    authority = Authority(tmp_path / "authority")
    certificate = authority.sign("server", "DNS:localhost")
    await encrypt_postgres(throwaway_postgres.url, certificate)
    await anyio.to_thread.run_sync(encrypt_rabbit, throwaway_rabbit, certificate)
    return Encrypted(authority, throwaway_postgres, throwaway_rabbit)


@pytest.fixture
async def deployed(tmp_path: Path, encrypted: Encrypted, prefix: str) -> AsyncIterator[Deployment]:
    """A deployment that reaches both servers over TLS, and has no other address of them."""
    async with session_on(encrypted.database_url) as session:
        await migrate(session)
    async with deployment(tmp_path, encrypted.database_url, encrypted.broker_url, prefix) as made:
        yield made


async def test_a_night_over_tls_and_whom_both_sides_refuse(
    tmp_path: Path, deployed: Deployment, encrypted: Encrypted
) -> None:
    client = encrypted.authority.sign("our-worker")
    deployed.declare(JOBS)
    await deployed.deploy(50)
    services = [
        deployed.start("trigger"),
        deployed.start(
            "worker",
            broker_url=encrypted.broker(
                cafile=encrypted.authority.certificate, certfile=client.certificate, keyfile=client.key
            ),
        ),
    ]
    async with session_on(deployed.database_url) as session:
        await assert_night(session, deployed, "night", 50)
        ours = "from pg_stat_ssl join pg_stat_activity using (pid) where application_name like 'matins %'"
        assert await session.fetchval(f"select count(*) > 1 and bool_and(ssl) {ours}")
        await until(lambda: anyio.to_thread.run_sync(all_are_encrypted, encrypted.rabbit.management_url))
    await refused_by_the_database(encrypted, Authority(tmp_path / "other"))
    await refused_by_the_broker(encrypted, Authority(tmp_path / "another"))
    await over_when_the_certificate_is(deployed, encrypted, services)


def all_are_encrypted(management_url: str) -> bool:
    connections = manage(Broker("", management_url), "GET", "/api/connections")
    assert all(one["ssl"] for one in connections)
    return any("our-worker" in str(one.get("peer_cert_subject")) for one in connections)


async def refused_by_the_database(encrypted: Encrypted, other: Authority) -> None:
    wrong: dict[str, str | Path] = {"sslmode": "verify-full", "sslrootcert": other.certificate}
    right: dict[str, str | Path] = wrong | {"sslrootcert": encrypted.authority.certificate}
    assert "no encryption" in await database_refusal(encrypted.database(sslmode="disable"))
    unknown = await database_refusal(secured(encrypted.postgres.url, query=wrong))
    assert "certificate is refused: unable to get local issuer" in unknown
    stranger = await database_refusal(secured(encrypted.postgres.url, host="127.0.0.1", query=right))
    assert "certificate is refused: IP address mismatch, certificate is not valid for '127.0.0.1'" in stranger
    trusting: dict[str, str | Path] = {"sslmode": "require"}
    for query in (trusting, right | {"sslmode": "verify-ca"}):
        address = secured(encrypted.postgres.url, host="127.0.0.1", query=query)
        session = await connect(address, name="matins test", timeout=timedelta(seconds=SECONDS))
        assert await session.fetchval("select ssl from pg_stat_ssl where pid = pg_backend_pid()")
        await session.close()


async def refused_by_the_broker(encrypted: Encrypted, other: Authority) -> None:
    right = encrypted.authority.certificate
    refused = {
        encrypted.broker(cafile=other.certificate): "its certificate is refused: ",
        encrypted.broker(): "its certificate is refused: self-signed certificate in certificate chain",
        encrypted.broker(host="127.0.0.1", cafile=right): "certificate is not valid for '127.0.0.1'",
        encrypted.broker(scheme="amqp"): "if it expects TLS there, begin the address with amqps://",
        secured(encrypted.rabbit.url, scheme="amqps", query={"cafile": right}): "it speaks no TLS on this port",
    }
    for url, reason in refused.items():
        assert reason in await broker_refusal(url)


async def over_when_the_certificate_is(deployed: Deployment, encrypted: Encrypted, services: list[Service]) -> None:
    """See that an expired certificate stops nobody who is connected; who comes waits, says why, and goes on."""
    old = encrypted.authority.sign("old", "DNS:localhost", ended=True)
    good = encrypted.authority.sign("good", "DNS:localhost")
    administrator = encrypted.postgres.url
    await encrypt_postgres(administrator, old)
    await anyio.to_thread.run_sync(replace_rabbit, encrypted.rabbit, old)
    assert "certificate is refused: certificate has expired" in await database_refusal(encrypted.database_url)
    assert "certificate is refused: certificate has expired" in await broker_refusal(encrypted.broker_url)
    status = deployed.start("trigger", "status")
    late = deployed.start("worker")
    waiting = await late.logged("waiting for the servers")
    assert waiting["reason"] == "PostgreSQL: its certificate is refused: certificate has expired"
    assert await status.ended() == 2
    assert all(service.alive for service in services)
    await encrypt_postgres(administrator, good)
    await anyio.to_thread.run_sync(replace_rabbit, encrypted.rabbit, good)
    await late.working()


async def database_refusal(url: str) -> str:
    with pytest.raises(DatabaseUnavailable) as caught:
        await connect(url, name="matins test", timeout=timedelta(seconds=SECONDS))
    return str(caught.value)


async def broker_refusal(url: str) -> str:
    with pytest.raises(BrokerUnavailable) as caught:
        await close_connection(await open_connection(url, name="matins test", heartbeat=20, timeout=SECONDS))
    return str(caught.value)
