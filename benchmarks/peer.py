"""The peer: a Celery application that does the same inserts, one account a message and a transaction each.

Acknowledged late, so that it is at-least-once like ours; two prefork processes; a prefetch multiplier of 50.
"""

import os
from typing import Any

import psycopg
from celery import Celery
from celery.signals import worker_process_init, worker_ready

INVOICE = "insert into bench.invoice (account, period, amount) values (%s, '2026-08', 100) on conflict do nothing"
READY = "peer is ready"

application = Celery("benchmarks.peer", broker=os.environ.get("BENCH_BROKER_URL"))
application.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=50,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    task_default_queue=os.environ.get("BENCH_QUEUE", "bench-peer"),
)
_connections: list[psycopg.Connection[Any]] = []


@worker_process_init.connect  # type: ignore[untyped-decorator] # Celery ships no types
def connect(**_: object) -> None:
    """Open the connection of one process."""
    _connections.append(psycopg.connect(os.environ["BENCH_DATABASE_URL"], autocommit=True))


@worker_ready.connect  # type: ignore[untyped-decorator] # Celery ships no types
def tell(**_: object) -> None:
    """Say that tasks are taken from now on."""
    print(READY, flush=True)


@application.task  # type: ignore[untyped-decorator] # Celery ships no types
def invoice(account: str) -> None:
    """Write one account's invoice."""
    connection = _connections[0]
    with connection.transaction():
        connection.execute(INVOICE, (account,))


@application.task  # type: ignore[untyped-decorator] # Celery ships no types
def fan_out(accounts: int) -> None:
    """Send a message for each account, on one pooled producer."""
    with application.producer_pool.acquire(block=True) as producer:
        for number in range(1, accounts + 1):
            invoice.apply_async((f"acct-{number:09d}",), producer=producer)
