import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from shared import clock, logs, telemetry
from shared.telemetry_export import Collector as Standing
from shared.telemetry_metrics import MOST_BEGUN
from tests.support.otlp import Collector

ROOT = Path(__file__).parents[2]
WORK = telemetry.Destination("matins.work", "default", "matins.work.default", "broker", 5672)
NIGHT = "invoice-run:2026-08-25T02:00Z"
Begin = Callable[..., Collector]


def configure(variables: dict[str, str], success_sampling: float = 0.0) -> None:
    telemetry.configure(
        "matins-worker",
        instance="i-1",
        version="1.2.3",
        environment="test",
        success_sampling=success_sampling,
        otel=variables,
    )


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with Collector() as listening:
        configure(listening.variables)
        yield listening
        telemetry.shutdown(0.5)


def execute(outcome: str, *links: str, account: str = "a-1") -> str:
    with telemetry.execute_span("invoice-run", WORK, occurrence=NIGHT, message_id="m-1", links=links) as span:
        span.set(account=account, attempt=1)
        with telemetry.settle_span("invoice-run", NIGHT) as settle:
            settle.set(outcome=outcome)
        span.set(outcome=outcome)
        return span.context


def test_a_night_is_one_trace_and_each_execution_another_that_links_to_it(collector: Collector) -> None:
    due = datetime(2026, 8, 25, 2, tzinfo=UTC)
    with telemetry.claim_span("invoice-run", NIGHT, scheduled_at=due, epoch=1, generation=1) as claim:
        stored = claim.context
    with telemetry.fan_out_span("invoice-run", NIGHT, parent=stored, accounts=3):
        pass
    with telemetry.publish_span("invoice-run", WORK, messages=3, parent=stored, occurrence=NIGHT) as publish:
        sent = publish.context
    failed = execute("failed", sent, "")
    with telemetry.close_span("invoice-run", NIGHT, parent=stored) as close:
        close.set(outcome="partial")
    assert telemetry.flush()

    root = collector.span_of(stored)
    assert root is not None
    assert root.parent_id == ""
    assert {span.name for span in collector.children_of(root)} == {"fan out", "publish matins.work", "close"}
    executed = collector.span_of(failed)
    assert executed is not None
    assert executed.trace_id != root.trace_id
    assert executed.parent_id == ""
    [publishing] = collector.linked_from(executed)
    assert publishing.name == "publish matins.work"
    assert [span.name for span in collector.ancestors_of(publishing)] == ["claim"]
    assert root.attributes["matins.scheduled_at"] == "2026-08-25T02:00:00Z"
    assert root.attributes["matins.epoch"] == 1


def test_spans_carry_the_names_of_the_messaging_conventions(collector: Collector) -> None:
    with telemetry.publish_span("invoice-run", WORK, messages=2, occurrence=NIGHT):
        pass
    execute("failed")
    telemetry.flush()

    [publish] = collector.spans_named("publish matins.work")
    [process] = collector.spans_named("process matins.work.default")
    assert (publish.kind, process.kind) == ("producer", "consumer")
    assert publish.attributes["messaging.batch.message_count"] == 2
    assert publish.attributes["messaging.operation.type"] == "send"
    assert process.attributes == {
        "matins.step": "execute",
        "matins.job": "invoice-run",
        "matins.occurrence": NIGHT,
        "matins.account": "a-1",
        "matins.attempt": 1,
        "matins.outcome": "failed",
        "messaging.system": "rabbitmq",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "matins.work:default:matins.work.default",
        "messaging.rabbitmq.destination.routing_key": "default",
        "messaging.message.id": "m-1",
        "messaging.message.conversation_id": NIGHT,
        "server.address": "broker",
        "server.port": 5672,
    }
    resource = process.resource
    assert (resource["service.name"], resource["service.version"]) == ("matins-worker", "1.2.3")
    assert (resource["service.instance.id"], resource["deployment.environment.name"]) == ("i-1", "test")


def test_the_environment_names_the_service_before_we_do(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.namespace=nights,team=billing")
    configure(collector.variables)
    execute("failed")
    telemetry.flush()

    [span] = collector.spans_named("settle")
    assert (span.resource["service.namespace"], span.resource["team"]) == ("nights", "billing")


def test_a_success_that_is_not_sampled_is_not_exported_nor_is_anything_inside_it(collector: Collector) -> None:
    for _ in range(20):
        execute("succeeded")
    failed = execute("failed")
    telemetry.flush()

    assert [span.name for span in collector.spans] == ["settle", "process matins.work.default"]
    assert {span.trace_id for span in collector.spans} == {failed.split("-")[1]}


def test_a_success_that_is_sampled_is_exported_whole(collector: Collector) -> None:
    configure(collector.variables, success_sampling=1.0)
    execute("succeeded")
    telemetry.flush()

    assert [span.name for span in collector.spans] == ["settle", "process matins.work.default"]


def test_the_share_of_successes_is_kept(collector: Collector) -> None:
    configure(collector.variables, success_sampling=0.25)
    for _ in range(1000):
        execute("succeeded")
    telemetry.flush()

    assert 150 < len(collector.spans_named("settle")) < 350


def test_a_failed_account_of_a_chunk_brings_its_whole_execution(collector: Collector) -> None:
    with telemetry.execute_span("charge", WORK, occurrence=NIGHT, message_id="m", links=()) as span:
        telemetry.failed_account("charge", NIGHT, "a-7", "Refused", "no: https://u:secret@bank/")
        span.set(outcome="succeeded")
    telemetry.flush()

    [account] = collector.spans_named("execute account")
    parent = collector.parent_of(account)
    assert parent is not None
    assert parent.name == "process matins.work.default"
    assert account.failed
    assert account.attributes["error.type"] == "Refused"
    assert account.attributes["matins.account"] == "a-7"
    assert account.description == "no: https://u:***@bank/"


def test_a_retry_is_published_inside_its_execution(collector: Collector) -> None:
    delay = telemetry.Destination("matins.delay.5s", "default")
    with telemetry.execute_span("charge", WORK, occurrence=NIGHT, message_id="m", links=()) as first:
        with telemetry.retry_span("charge", delay, occurrence=NIGHT, delay=5.0, attempt=1) as retry:
            again = retry.context
        first.set(outcome="retried")
    second = execute("failed", again, first.context)
    telemetry.flush()

    [published] = collector.spans_named("publish matins.delay.5s")
    executed = collector.span_of(second)
    assert executed is not None
    assert [span.name for span in collector.ancestors_of(published)] == ["process matins.work.default"]
    assert [span.span_id for span in collector.linked_from(executed)] == [published.span_id, published.parent_id]


def test_an_exception_marks_the_step_and_goes_on(collector: Collector) -> None:
    def work() -> None:
        with telemetry.execute_span("charge", WORK, occurrence=NIGHT, message_id="m", links=()) as span:
            span.set(outcome="succeeded")
            raise TimeoutError("too slow")

    with pytest.raises(TimeoutError):
        work()
    telemetry.flush()

    [executed] = collector.spans_named("process matins.work.default")
    assert executed.failed
    assert (executed.description, executed.attributes["error.type"]) == ("too slow", "TimeoutError")


async def test_a_cancelled_step_is_interrupted_not_failed(collector: Collector) -> None:
    async with anyio.create_task_group() as group:

        async def work() -> None:
            with telemetry.execute_span("charge", WORK, occurrence=NIGHT, message_id="m", links=()):
                group.cancel_scope.cancel()
                await anyio.Event().wait()

        group.start_soon(work)
    await anyio.to_thread.run_sync(telemetry.flush)

    [executed] = collector.spans_named("process matins.work.default")
    assert not executed.failed
    assert executed.attributes["matins.interrupted"] is True


@pytest.mark.parametrize("parent", ["", "nonsense", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "\x00" * 9999])
def test_an_unreadable_context_is_no_context(collector: Collector, parent: str) -> None:
    with telemetry.close_span("charge", NIGHT, parent=parent):
        pass
    execute("failed", parent)
    telemetry.flush()

    [close] = collector.spans_named("close")
    [executed] = collector.spans_named("process matins.work.default")
    assert close.parent_id == ""
    assert executed.links == ()


def test_one_execution_holds_a_bounded_number_of_spans(collector: Collector) -> None:
    with telemetry.execute_span("charge", WORK, occurrence=NIGHT, message_id="m", links=()):
        for number in range(3000):
            telemetry.failed_account("charge", NIGHT, str(number), "Refused", "no")
    telemetry.flush()

    assert len(collector.spans_named("process matins.work.default")) == 1
    assert len(collector.spans_named("execute account")) == 1024


def test_metrics_arrive_with_their_labels_and_durations_are_measured(collector: Collector) -> None:
    telemetry.metrics.claim_attempts.add(2, job="charge")
    telemetry.metrics.accounts.add(3, job="charge", outcome="succeeded")
    telemetry.metrics.alerts.add(1, kind="missed", event="opened")
    telemetry.metrics.lag.record(4.0, job="charge")
    execute("succeeded")
    with pytest.raises(OSError), telemetry.publish_span("charge", WORK, messages=5):  # noqa: PT011 - any will do
        raise OSError
    telemetry.flush()

    [attempts] = collector.points_named("matins.claim.attempts")
    assert (attempts.value, attempts.attributes) == (2, {"matins.job": "charge"})
    [accounts] = collector.points_named("matins.accounts")
    assert (accounts.value, accounts.attributes) == (3, {"matins.job": "charge", "outcome": "succeeded"})
    [alerts] = collector.points_named("matins.alerts")
    assert (alerts.value, alerts.attributes) == (1, {"kind": "missed", "event": "opened"})
    [lag] = collector.points_named("matins.lag")
    assert (lag.value, lag.count, lag.unit) == (4.0, 1, "s")
    [processed] = collector.points_named("messaging.process.duration")
    assert processed.count == 1
    [sent] = collector.points_named("messaging.client.sent.messages")
    assert (sent.value, sent.attributes["error.type"]) == (5, "OSError")


def test_no_label_may_name_an_account() -> None:
    with pytest.raises(TypeError):
        telemetry.metrics.accounts.add(1, job="charge", outcome="failed", account="a-1")  # type: ignore[call-arg] # the point of the test


def test_every_instrument_has_a_name_of_its_own() -> None:
    names = [instrument.name for instrument in telemetry.metrics.instruments()]
    assert len(set(names)) == len(names) >= 16


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
            "OTEL_TRACES_EXPORTER": "none",
            "OTEL_METRICS_EXPORTER": "none",
        },
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_without_a_collector_nothing_is_recorded_and_nothing_breaks(variables: dict[str, str]) -> None:
    configure(variables)

    assert execute("failed") == ""
    assert telemetry.current() is None
    assert telemetry.flush()
    assert telemetry.shutdown()


def test_a_step_without_a_collector_costs_next_to_nothing() -> None:
    configure({})
    began = clock.monotonic()
    for _ in range(1000):
        execute("succeeded")
    assert (clock.monotonic() - began) / 1000 < 0.001


def test_a_process_without_a_collector_never_loads_the_exporter() -> None:
    code = "import sys; from shared import telemetry; print([m for m in sys.modules if m in ('requests', 'urllib3')])"
    done = subprocess.run((sys.executable, "-c", code), cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_variables_that_the_sdk_cannot_use_leave_telemetry_off(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "-1")
    logs.configure("info", "json", service="matins-worker", instance="i-1")
    configure({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})

    assert "telemetry is off" in capsys.readouterr().out
    assert execute("failed") == ""


def test_a_collector_that_refuses_is_worth_one_warning(
    collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.configure("info", "json", service="matins-worker", instance="i-1")
    collector.status = 500
    for _ in range(3):
        execute("failed")
        telemetry.flush()
    collector.status = 200
    execute("failed")
    telemetry.flush()

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["level"] for line in lines] == ["warning", "info"]
    assert "not taken" in lines[0]["event"]
    assert "again" in lines[1]["event"]
    assert collector.spans_named("settle")


def test_a_collector_that_is_down_is_worth_one_warning(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    logs.configure("info", "json", service="matins-worker", instance="i-1")
    with Collector() as gone:
        variables = gone.variables
    configure(variables)
    for _ in range(3):
        execute("failed")
        assert telemetry.flush()
    telemetry.shutdown()

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["level"] for line in lines] == ["warning"]


def test_a_collector_that_hangs_holds_up_the_end_for_a_bounded_time(collector: Collector) -> None:
    collector.hold()
    execute("failed")
    began = clock.monotonic()
    assert not telemetry.shutdown(0.3)
    assert clock.monotonic() - began < 1.0


def test_a_collector_that_flaps_is_warned_about_again_only_after_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json", service="matins-worker", instance="i-1")
    now = [0.0]
    standing = Standing(monotonic=lambda: now[0])
    for _ in range(5):
        standing.note("traces", taken=False)
        standing.note("traces", taken=True)
    now[0] = 601.0
    standing.note("traces", taken=False)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["level"] for line in lines] == ["warning", "info", "warning"]


JOB = """
from opentelemetry import trace
from shared import telemetry
import sys
telemetry.configure("matins-worker", instance="i", version="1", environment="test", success_sampling=0.0,
                    otel={"OTEL_EXPORTER_OTLP_ENDPOINT": sys.argv[1]})
work = telemetry.Destination("matins.work", "default")
for outcome in ("succeeded", "failed"):
    with telemetry.execute_span("charge", work, occurrence="o", message_id="m", links=()) as span:
        late = trace.get_tracer("billing").start_span(f"late {outcome}")
        with trace.get_tracer("billing").start_as_current_span(f"call the bank {outcome}"):
            pass
        span.set(outcome=outcome)
    late.end()
assert telemetry.shutdown()
"""


def test_the_spans_of_a_jobs_own_code_go_with_their_execution() -> None:
    with Collector() as collector:
        subprocess.run((sys.executable, "-c", JOB, collector.endpoint), cwd=ROOT, check=True)

    assert {span.name for span in collector.spans} == {
        "call the bank failed",
        "late failed",
        "process matins.work:default",
    }
    [bank] = collector.spans_named("call the bank failed")
    assert [span.name for span in collector.ancestors_of(bank)] == ["process matins.work:default"]


@pytest.mark.parametrize(
    ("kind", "begun"),
    [
        ("trigger", {"matins.claim.attempts", "matins.claim.wins", "matins.takeovers", "matins.resends"}),
        ("worker", {"matins.accounts", "matins.retries", "matins.dead_letters"}),
    ],
)
def test_what_is_counted_of_a_job_begins_at_nothing(kind: str, begun: set[str], collector: Collector) -> None:
    telemetry.metrics.begin(kind, ["invoice-run"])
    telemetry.flush()
    assert {point.name for point in collector.points} == begun
    assert {point.value for point in collector.points} == {0}
    assert {point.attributes["matins.job"] for point in collector.points} == {"invoice-run"}


def test_of_very_many_jobs_nothing_is_begun(collector: Collector) -> None:
    telemetry.metrics.begin("worker", [f"job-{number}" for number in range(MOST_BEGUN + 1)])
    telemetry.flush()
    assert collector.points == []
