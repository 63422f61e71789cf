"""The dashboard on a real Prometheus, which fetches from a real RabbitMQ, and from what tells as Matins does."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from aio_pika import Message

from examples.servers.find import started_rabbit
from examples.servers.ports import LOOPBACK
from examples.servers.server import BrokerServer
from shared.broker_connection import close_connection, open_channel, open_connection
from shared.broker_topology import declare_topology
from shared.topology import Topology
from tests.support.dashboard import RABBITMQ, expressions, filled_in
from tests.support.fleet import until
from tests.support.prometheus import exposed
from tests.support.prometheus_server import Prometheus, RefusedError

SECONDS = 20.0
TOPOLOGY = Topology("matins", "test", frozenset({"invoice-run"}), (1,), 20)
LABELS = {"matins_job": "invoice-run", "outcome": "failed", "kind": "failed"}
VIRTUAL_HOST = "/"


class _Scrape(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(exposed(LABELS, time.time()).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002, ARG002 - as the base class has it
        return


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerServer]:
    """A RabbitMQ of these tests' own that tells metrics."""
    server = started_rabbit(metrics=True)
    yield server
    server.delete()


@pytest.fixture(scope="module")
def prometheus(broker: BrokerServer) -> Iterator[Prometheus]:
    """A Prometheus that fetches from it, and what the collector would have of Matins."""
    with ThreadingHTTPServer((LOOPBACK, 0), _Scrape) as collector:
        collector.daemon_threads = True
        threading.Thread(target=collector.serve_forever, args=(0.02,), daemon=True).start()
        targets = {"matins": f"{LOOPBACK}:{collector.server_port}"}
        targets |= dict.fromkeys(("rabbitmq", "rabbitmq-queues"), broker.metrics_address)
        with Prometheus(targets, VIRTUAL_HOST) as running:
            yield running
        collector.shutdown()


@asynccontextmanager
async def held_message(url: str) -> AsyncIterator[None]:
    """Have one message of each of our queues held meanwhile, and one wait in it."""
    await declare_topology(url, TOPOLOGY, timeout=SECONDS)
    connection = await open_connection(url, name="test", heartbeat=20, timeout=SECONDS)
    try:
        channel = await open_channel(connection, confirms=True, timeout=SECONDS)
        for name in TOPOLOGY.queue_names:
            for _ in range(2):
                await channel.default_exchange.publish(Message(b"x"), name)
            await (await channel.declare_queue(name, passive=True)).get()
        yield
    finally:
        await close_connection(connection)


async def test_every_panel_shows_something(broker: BrokerServer, prometheus: Prometheus) -> None:
    async with held_message(broker.url):
        for expression in map(filled_in, expressions()):

            async def shown(asked: str = expression) -> bool:
                return bool(await asyncio.to_thread(prometheus.query, asked))

            await until(shown)


async def test_rabbitmq_tells_each_metric_that_the_dashboard_names_with_its_labels(
    broker: BrokerServer, prometheus: Prometheus
) -> None:
    await declare_topology(broker.url, TOPOLOGY, timeout=SECONDS)
    for name, labels in RABBITMQ.items():

        async def told(asked: str = name) -> list[dict[str, dict[str, str]]]:
            return await asyncio.to_thread(prometheus.query, asked)

        (first, *_) = await until(told)
        assert labels <= first["metric"].keys(), name


async def test_processes_keep_the_names_that_the_collector_gives_them(prometheus: Prometheus) -> None:
    async def told() -> list[dict[str, dict[str, str]]]:
        return await asyncio.to_thread(prometheus.query, "matins_observed_timestamp_seconds")

    (one,) = await until(told)
    assert one["metric"] == {
        "__name__": "matins_observed_timestamp_seconds",
        "job": "matins/matins-trigger",
        "instance": "one",
    }


def test_what_is_no_expression_is_refused(prometheus: Prometheus) -> None:
    with pytest.raises(RefusedError, match="parse error"):
        prometheus.query("sum by (job up")
