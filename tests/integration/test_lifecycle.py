import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from shared.health import Health
from shared.lifecycle import PartDied, Stopping, Wake, every, instance_id, run_service, start_part

ROOT = Path(__file__).parents[2]
BEGIN = """
import sys, threading, anyio
from datetime import timedelta
from functools import partial
from shared import logs
from shared.lifecycle import instance_id, leave, run_service, start_part

logs.configure("info", "json", service="matins-worker", instance=instance_id())
log = logs.logger("test")

def serve(start, seconds=20.0):
    leave(anyio.run(partial(run_service, "worker", start, grace_period=timedelta(seconds=seconds))))
"""
DRAINING = """
async def start(group, stopping):
    async def consume():
        log.info("ready")
        await stopping.wait()
        log.info("draining the rest")
    start_part(group, stopping, "consume", consume)

serve(start)
"""
STUBBORN = """
async def start(group, stopping):
    async def consume():
        log.info("ready")
        await stopping.wait()
        log.info("stopping was seen")
        await anyio.Event().wait()
    start_part(group, stopping, "consume", consume)

serve(start, float(sys.argv[1]))
"""
BLOCKED = """
async def start(group, stopping):
    log.info("ready")
    threading.Event().wait()

serve(start, 0.0)
"""
ABANDONED = """
async def start(group, stopping):
    async def consume():
        log.info("ready")
        await anyio.to_thread.run_sync(threading.Event().wait, abandon_on_cancel=True)
    start_part(group, stopping, "consume", consume)

import anyio.to_thread
serve(start, 0.0)
"""
DYING_TOGETHER = """
async def start(group, stopping):
    over = anyio.Event()

    async def sweep():
        raise ConnectionError("lost")

    async def beat():
        await stopping.wait()
        over.set()
        raise RuntimeError("there is nothing to go on with")

    async def drain():
        with anyio.CancelScope(shield=True):
            await over.wait()
        raise OSError("broken off")

    start_part(group, stopping, "beat", beat)
    async with anyio.create_task_group() as work:
        work.start_soon(drain)
        start_part(work, stopping, "sweep", sweep)

serve(start)
"""
DYING = """
async def start(group, stopping):
    async def fine():
        await stopping.wait()
    async def sweep():
        raise ConnectionError("lost postgresql://matins:secret@database/")
    start_part(group, stopping, "consume", fine)
    start_part(group, stopping, "sweep", sweep)

serve(start)
"""
ENDING = """
async def start(group, stopping):
    async def consume():
        return
    start_part(group, stopping, "consume", consume)

serve(start)
"""
FAULTY = """
async def start(group, stopping):
    raise RuntimeError("no database")

serve(start)
"""


class Process:
    """A service of its own; its lines are read as they come."""

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        self.popen = popen

    def lines(self) -> Iterator[dict[str, Any]]:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            yield json.loads(line)

    def wait_for(self, event: str) -> None:
        for line in self.lines():
            if line["event"] == event:
                return
        raise AssertionError(f"{event!r} was never said")

    def ended(self) -> tuple[int, dict[str, Any]]:
        """Wait for the end; return the exit code and the last line."""
        *_, last = self.lines()
        return self.popen.wait(20), last


@contextmanager
def service(code: str, *arguments: str) -> Iterator[Process]:
    command = (sys.executable, "-c", BEGIN + code, *arguments)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as popen:
        try:
            yield Process(popen)
        finally:
            popen.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_drains(number: signal.Signals) -> None:
    with service(DRAINING) as process:
        process.wait_for("ready")
        process.popen.send_signal(number)
        process.wait_for("draining the rest")
        code, last = process.ended()

    assert code == 0
    assert (last["event"], last["reason"]) == ("service ended", number.name)


def test_the_second_signal_ends_at_once() -> None:
    with service(STUBBORN, "60") as process:
        process.wait_for("ready")
        process.popen.terminate()
        process.wait_for("stopping was seen")
        process.popen.terminate()
        code, last = process.ended()

    assert (code, last["event"]) == (130, "ended at once")


def test_what_outlasts_the_grace_period_is_cancelled() -> None:
    with service(STUBBORN, "0.1") as process:
        process.wait_for("ready")
        process.popen.terminate()
        code, last = process.ended()

    assert code == 1
    assert (last["event"], last["part"]) == ("service failed", "drain")
    assert "not over within 0.1 s" in last["reason"]


def test_a_blocked_event_loop_ends_all_the_same() -> None:
    with service(BLOCKED) as process:
        process.wait_for("ready")
        process.popen.terminate()
        code, last = process.ended()

    assert (code, last["part"], last["reason"]) == (1, "drain", "even cancelling took too long")


def test_a_blocked_event_loop_ends_at_once_on_the_second_signal() -> None:
    with service(BLOCKED) as process:
        process.wait_for("ready")
        process.popen.send_signal(signal.SIGINT)
        process.popen.send_signal(signal.SIGTERM)
        code, last = process.ended()

    assert (code, last["event"]) == (130, "ended at once")


def test_a_thread_that_was_abandoned_does_not_hold_up_the_end() -> None:
    with service(ABANDONED) as process:
        process.wait_for("ready")
        process.popen.terminate()
        code, last = process.ended()

    assert (code, last["event"]) == (1, "service failed")


def test_a_part_that_dies_ends_the_service_and_is_named_in_the_last_line() -> None:
    with service(DYING) as process:
        code, last = process.ended()

    assert code == 1
    assert (last["level"], last["event"], last["part"]) == ("error", "service failed", "sweep")
    assert last["reason"] == "ConnectionError: lost postgresql://matins:***@database/"


def test_of_several_that_die_the_first_is_blamed() -> None:
    with service(DYING_TOGETHER) as process:
        code, last = process.ended()

    assert (code, last["event"], last["part"]) == (1, "service failed", "sweep")


def test_a_part_that_ends_by_itself_ends_the_service() -> None:
    with service(ENDING) as process:
        code, last = process.ended()

    assert (code, last["part"]) == (1, "consume")
    assert last["reason"] == "it ended although nobody had asked it to"


def test_a_start_that_fails_is_named() -> None:
    with service(FAULTY) as process:
        code, last = process.ended()

    assert (code, last["part"], last["reason"]) == (1, "worker", "RuntimeError: no database")


async def test_a_service_whose_work_is_done_ends_well() -> None:
    async def start(_group: TaskGroup, _stopping: Stopping) -> None:
        return

    assert (await run_service("worker", start, grace_period=timedelta(seconds=1))).code == 0


async def test_a_service_that_stops_is_not_ready_but_alive() -> None:
    health = Health()

    async def start(_group: TaskGroup, stopping: Stopping) -> None:
        assert health.ready()["drain"] is None
        stopping.request("test")
        assert health.ready()["drain"] == "stopping"
        assert health.alive() == {"event loop": None}

    assert (await run_service("worker", start, grace_period=timedelta(seconds=9), health=health)).code == 0


async def test_an_address_that_is_taken_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    taken = Health()
    taken.serve("127.0.0.1", 0)

    async def start(_group: TaskGroup, _stopping: Stopping) -> None:
        raise AssertionError

    grace = timedelta(seconds=1)
    assert (await run_service("worker", start, grace_period=grace, health_address=("127.0.0.1", taken.port))).code == 1
    taken.close()
    assert "health endpoint" in capsys.readouterr().out.splitlines()[-1]


def test_a_process_keeps_its_id() -> None:
    assert instance_id() == instance_id()
    assert len(instance_id()) == 36


HOUR = timedelta(hours=1)


class Passes:
    """A pass that fails as often as told, and counts."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.run = 0
        self.ran = anyio.Event()

    async def __call__(self) -> None:
        self.run += 1
        self.ran.set()
        if self.failures >= self.run:
            raise ConnectionError("amqp://guest:secret@broker/ is away")

    async def again(self) -> None:
        """Wait for the next pass to begin."""
        await self.ran.wait()
        self.ran = anyio.Event()


@contextmanager
def deadline() -> Iterator[None]:
    with anyio.fail_after(20):
        yield


def passing(_error: Exception) -> bool:
    return True


async def test_a_loop_runs_at_once_then_when_woken_and_ends_when_stopping() -> None:
    passes, stopping, wake, health = Passes(), Stopping(), Wake(), Health()
    with deadline():
        async with anyio.create_task_group() as group:

            async def loop() -> None:
                await every("sweep", HOUR, passes, stopping, health=health, transient=passing, wake=wake)

            start_part(group, stopping, "sweep", loop)
            await passes.again()
            wake.set()
            await passes.again()
            stopping.request("test")

    assert passes.run == 2
    assert "sweep" not in health.ready()


async def test_a_loop_runs_again_after_its_interval() -> None:
    passes, stopping, health = Passes(), Stopping(), Health()
    with deadline():
        async with anyio.create_task_group() as group:

            async def loop() -> None:
                interval = timedelta(milliseconds=1)
                await every("sweep", interval, passes, stopping, health=health, transient=passing)

            group.start_soon(loop)
            for _ in range(3):
                await passes.again()
            stopping.request("test")

    assert passes.run >= 3


async def test_a_call_during_a_pass_is_kept() -> None:
    stopping, wake, health = Stopping(), Wake(), Health()
    run = 0

    async def run_pass() -> None:
        nonlocal run
        run += 1
        if run == 1:
            wake.set()
        else:
            stopping.request("test")

    with deadline():
        await every("sweep", HOUR, run_pass, stopping, health=health, transient=passing, wake=wake)

    assert run == 2


async def test_passes_that_keep_failing_make_the_part_unwell_until_one_completes() -> None:
    passes, stopping, wake, health = Passes(failures=3), Stopping(), Wake(), Health()
    reasons: list[str | None] = []
    with deadline():
        async with anyio.create_task_group() as group:

            async def loop() -> None:
                await every("sweep", HOUR, passes, stopping, health=health, transient=passing, wake=wake)

            group.start_soon(loop)
            for _ in range(4):
                await passes.again()
                await anyio.wait_all_tasks_blocked()
                reasons.append(health.ready()["sweep"])
                wake.set()
            await passes.again()
            stopping.request("test")

    unwell = "failed 3 times in a row: ConnectionError: amqp://guest:***@broker/ is away"
    assert reasons == [None, None, unwell, None]


async def test_a_pass_that_failed_is_tried_again_long_before_its_interval_is_over() -> None:
    passes, stopping, health = Passes(failures=1), Stopping(), Health()
    with deadline():
        async with anyio.create_task_group() as group:

            async def loop() -> None:
                await every("sweep", HOUR, passes, stopping, health=health, transient=passing)

            group.start_soon(loop)
            await passes.again()
            await passes.again()
            stopping.request("test")

    assert passes.run == 2


async def test_what_waits_is_cut_off_when_stopping() -> None:
    stopping = Stopping()
    with deadline():
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                with stopping.cutting_off():
                    await anyio.sleep_forever()

            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            stopping.request("test")
        with stopping.cutting_off():
            await anyio.sleep_forever()


async def test_an_error_that_does_not_pass_ends_the_loop_and_names_it() -> None:
    stopping, health = Stopping(), Health()

    async def run_pass() -> None:
        raise RuntimeError("a bug")

    async def loop() -> None:
        await every("sweep", HOUR, run_pass, stopping, health=health, transient=lambda _: False)

    with pytest.raises(ExceptionGroup) as died:
        async with anyio.create_task_group() as group:
            start_part(group, stopping, "sweep", loop)

    [part] = died.value.exceptions
    assert isinstance(part, PartDied)
    assert (part.name, part.reason) == ("sweep", "RuntimeError: a bug")


async def test_a_pass_that_does_not_end_is_seen() -> None:
    stopping, health, wedge = Stopping(), Health(), anyio.Event()
    with deadline():
        async with anyio.create_task_group() as group:

            async def loop() -> None:
                await every(
                    "sweep", HOUR, wedge.wait, stopping, health=health, transient=passing, wedged_after=timedelta(0)
                )

            group.start_soon(loop)
            await anyio.wait_all_tasks_blocked()
            assert health.ready()["sweep"] == "no pass has ended for 0 s"
            stopping.request("test")
            wedge.set()
