import contextlib
import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.health import Health

ROOT = Path(__file__).parents[2]


def request(port: int, path: str, method: str = "GET") -> tuple[int, bytes]:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()


def ask(port: int, path: str) -> tuple[int, dict[str, Any]]:
    status, body = request(port, path)
    return status, json.loads(body)


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> Iterator[Health]:
    health = Health(timedelta(seconds=10), monotonic=clock)
    health.serve("127.0.0.1", 0)
    yield health
    health.close()


def test_a_process_whose_parts_are_well_is_alive_and_ready(health: Health) -> None:
    health.part("database", lambda: None)

    assert ask(health.port, "/livez") == (200, {"alive": True, "parts": {"event loop": None}})
    assert ask(health.port, "/healthz") == ask(health.port, "/livez")
    assert ask(health.port, "/readyz") == (200, {"ready": True, "parts": {"event loop": None, "database": None}})


def test_a_part_that_is_unwell_is_named_and_only_readiness_suffers(health: Health) -> None:
    reason: list[str | None] = ["refused: amqp://guest:secret@broker/ \x1b[31m"]
    health.part("broker", lambda: reason[0])
    health.part("report", lambda: "slow", required_for_ready=False)

    status, answer = ask(health.port, "/readyz")
    assert (status, answer["ready"]) == (503, False)
    assert answer["parts"] == {"event loop": None, "broker": "refused: amqp://guest:***@broker/ \\x1b[31m"}
    assert ask(health.port, "/livez")[0] == 200

    reason[0] = None
    assert ask(health.port, "/readyz")[0] == 200


def test_a_fatal_part_means_dead(health: Health) -> None:
    health.part("lease", lambda: "wedged", required_for_ready=False, fatal=True)

    assert ask(health.port, "/livez") == (503, {"alive": False, "parts": {"event loop": None, "lease": "wedged"}})
    assert ask(health.port, "/readyz")[0] == 503


def test_a_check_that_fails_is_a_reason(health: Health) -> None:
    def check() -> str | None:
        raise KeyError("password")

    health.part("database", check)

    assert ask(health.port, "/readyz")[1]["parts"]["database"] == "its check failed: KeyError"


def test_a_loop_that_does_not_beat_is_dead(health: Health, clock: Clock) -> None:
    clock.seconds = 10.5
    status, answer = ask(health.port, "/livez")
    assert (status, answer["parts"]["event loop"]) == (503, "blocked for 10 s")

    health.beat()
    assert ask(health.port, "/livez")[0] == 200


def test_a_part_can_be_removed(health: Health) -> None:
    health.part("sweep", lambda: "failing")
    health.remove("sweep")

    assert ask(health.port, "/readyz")[0] == 200


def test_other_paths_and_methods_are_refused(health: Health) -> None:
    assert request(health.port, "/")[0] == 404
    assert request(health.port, "/livez", "POST")[0] == 405
    assert request(health.port, "/livez", "HEAD") == (200, b"")


def test_an_address_in_use_is_the_callers_error(health: Health) -> None:
    with pytest.raises(OSError, match="in use"):
        Health().serve("127.0.0.1", health.port)


def test_a_closed_endpoint_listens_no_more() -> None:
    health = Health()
    health.serve("127.0.0.1", 0)
    port = health.port
    health.close()
    health.close()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    with pytest.raises(RuntimeError, match="not open"):
        _ = health.port


BLOCKED = """
import sys, anyio
from datetime import timedelta
from shared.health import Health
from shared.lifecycle import run_service

health = Health(timedelta(seconds=0.2))

async def start(group, stopping):
    print(health.port, flush=True)
    sys.stdin.readline()  # blocks the event loop
    print("free", flush=True)
    await stopping.wait()

address = ("127.0.0.1", 0)
end = anyio.run(lambda: run_service("worker", start, grace_period=timedelta(1), health=health, health_address=address))
end.tell()
"""


def test_a_blocked_event_loop_is_seen_from_outside() -> None:
    with subprocess.Popen(
        (sys.executable, "-c", BLOCKED), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = iter(process.stdout)
        port = int(next(line for line in lines if line.strip().isdigit()))
        while (seen := ask(port, "/livez"))[0] == 200:
            pass
        assert seen[1]["parts"]["event loop"].startswith("blocked for")
        process.stdin.write("\n")
        process.stdin.flush()
        assert next(lines) == "free\n"
        while ask(port, "/livez")[0] != 200:
            pass
        process.terminate()
        assert process.wait(20) == 0
