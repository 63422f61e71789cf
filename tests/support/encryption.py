"""Servers that speak TLS, wherever they come from: told to by an administrator while they run."""

import urllib.parse
from collections.abc import Mapping

import anyio
import asyncpg

from examples.servers.server import BrokerServer
from shared import clock
from tests.support.certificates import Certificate
from tests.support.servers import CONNECT_SECONDS

ONLY_ENCRYPTED = "hostssl all all all scram-sha-256"
WRITE = """
Folder = os:getenv("HOME"),
ok = file:write_file(filename:join(Folder, "{name}"), <<"{text}">>),
ok = ssl:clear_pem_cache().
"""
LISTEN = """
File = fun(Name) -> filename:join(os:getenv("HOME"), Name) end,
Options = [{{cacertfile, File("authority.pem")}}, {{certfile, File("server.pem")}}, {{keyfile, File("server.key")}},
  {{verify, verify_peer}}, {{fail_if_no_peer_cert, false}}],
ok = rabbit_networking:start_ssl_listener({{"{address}", {port}}}, Options, 4).
"""


def encrypt_rabbit(server: BrokerServer, certificate: Certificate) -> None:
    """Have a broker answer on its port for TLS with this certificate, for the authority's clients too, from now on."""
    replace_rabbit(server, certificate)
    address, port = server.tls_listener
    server.control("eval", LISTEN.format(address=address, port=port))


def replace_rabbit(server: BrokerServer, certificate: Certificate) -> None:
    """Have an encrypting broker show another certificate."""
    files = {
        "authority.pem": certificate.authority,
        "server.pem": certificate.certificate,
        "server.key": certificate.key,
    }
    for name, path in files.items():
        server.control("eval", WRITE.format(name=name, text=path.read_text()))


async def encrypt_postgres(url: str, certificate: Certificate) -> None:
    """Have a PostgreSQL show this certificate, and take nobody without TLS, from now on."""
    connection = await asyncpg.connect(url, timeout=CONNECT_SECONDS)
    try:
        for name, path in (("server.crt", certificate.certificate), ("server.key", certificate.key)):
            lines = path.read_text().splitlines()
            assert not set("'\\") & set(path.read_text())
            rows = ",".join(f"('{line}')" for line in lines)
            await connection.execute(f"copy (values {rows}) to program 'umask 077; cat > {name}'")
        await connection.execute(f"copy (values ('{ONLY_ENCRYPTED}')) to program 'cat > pg_hba.conf'")
        await connection.execute("alter system set ssl = on")
        before = await connection.fetchval("select pg_conf_load_time()")
        await connection.execute("select pg_reload_conf()")
        with anyio.fail_after(CONNECT_SECONDS):
            while await connection.fetchval("select pg_conf_load_time()") == before:
                await clock.sleep(0.02)
    finally:
        await connection.close()


def secured(
    url: str,
    *,
    host: str = "localhost",
    port: int | None = None,
    scheme: str = "",
    query: Mapping[str, object] | None = None,
) -> str:
    """Give an address with another host, port, scheme and query."""
    address = urllib.parse.urlsplit(url)
    user = address.netloc.rpartition("@")[0]
    return address._replace(
        scheme=scheme or address.scheme,
        netloc=f"{user}@{host}:{port or address.port}",
        query=urllib.parse.urlencode(query or {}),
    ).geturl()
