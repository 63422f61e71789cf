from pathlib import Path

import pytest

from tests.support.fleet import closed_state, until
from tests.support.ledger import session_on
from tests.support.otlp import Collector, ReceivedSpan
from tests.support.processes import deployment

JOBS = """
async def flaky(call):
    if call.account == "a000003" and call.attempt == 1:
        raise ValueError("the first try fails")
    await effect(call)


# Each page takes long enough to find the trigger in the middle of it.
SLOWLY = SqlAccounts("select id as account from account, lateral (select pg_sleep(0.1), id as again) as w", page_size=1)
jobs = [nightly("traced", PerAccount(flaky), accounts=SLOWLY)]
"""


def reachable(spans: list[ReceivedSpan], start: ReceivedSpan) -> list[ReceivedSpan]:
    """Give every span that parents and links lead to, in either direction."""
    by_id = {span.span_id: span for span in spans}
    neighbours: dict[str, set[str]] = {span_id: set() for span_id in by_id}
    for span in spans:
        for other in (span.parent_id, *(span_id for _, span_id in span.links)):
            if other in by_id:
                neighbours[span.span_id].add(other)
                neighbours[other].add(span.span_id)
    found, waiting = {start.span_id}, [start.span_id]
    while waiting:
        for other in neighbours[waiting.pop()] - found:
            found.add(other)
            waiting.append(other)
    return [by_id[span_id] for span_id in found]


@pytest.mark.timeout(120)
async def test_one_account_s_steps_are_reachable_from_one_another_after_a_takeover_and_a_retry(
    tmp_path: Path, database_url: str, broker_url: str, prefix: str
) -> None:
    with Collector() as collector:
        async with deployment(tmp_path, database_url, broker_url, prefix, success_sampling="1") as night:
            night.declare(JOBS)
            await night.deploy(8)
            night.others |= collector.variables | {"OTEL_BSP_SCHEDULE_DELAY": "50"}
            async with session_on(database_url) as session:
                first = night.start("trigger")

                async def in_the_middle() -> object:
                    return await session.fetchval(
                        "select id from matins.occurrence where state = 'claimed' and accounts_read between 1 and 6"
                    )

                occurrence_id = await until(in_the_middle)
                await until(lambda: sent(collector, "claim"))
                first.kill()
                services = [night.start("trigger"), night.start("worker")]
                assert await closed_state(session, occurrence_id) == "succeeded"
            for service in services:
                service.terminate()
                assert await service.ended() == 0
        spans = list(collector.spans)
    tries = [
        span
        for span in spans
        if span.name.startswith("process ") and span.attributes.get("matins.account") == "a000003"
    ]
    assert sorted(str(span.attributes["matins.outcome"]) for span in tries) == ["retry", "succeeded"]
    assert [span.failed for span in tries if span.attributes["matins.outcome"] == "retry"] == [True]
    near = reachable(spans, tries[0])
    assert {span.span_id for span in tries} <= {span.span_id for span in near}
    names = {span.name for span in near}
    exchange = f"{prefix}.work"
    assert {"claim", "take over", "fan out", f"publish {exchange}", "settle", "close"} <= names
    assert any(name.startswith(f"publish {prefix}.delay.") for name in names)
    # A million accounts must not make a trace of a million spans: each execution is a trace of its own.
    claims = {span.trace_id for span in spans if span.name == "claim"}
    assert not any(span.trace_id in claims for span in spans if span.name.startswith("process "))


async def sent(collector: Collector, name: str) -> list[ReceivedSpan]:
    return collector.spans_named(name)
