"""What alert rules read leaves a running trigger, and the version that was deployed is marked by whoever starts."""

from pathlib import Path

import pytest

from schemas.alert import KINDS
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.nights import closed_occurrence
from tests.support.otlp import Collector
from tests.support.processes import deployment

JOBS = """
jobs = [nightly("measured", PerAccount(effect))]
"""


@pytest.mark.timeout(120)
async def test_a_trigger_tells_what_rules_read_and_each_service_marks_the_version_that_was_deployed(
    tmp_path: Path, database_url: str, broker_url: str, prefix: str
) -> None:
    with Collector() as collector:
        async with deployment(tmp_path, database_url, broker_url, prefix) as night:
            night.declare(JOBS)
            await night.deploy(2)
            night.others |= collector.variables | {
                "OTEL_METRIC_EXPORT_INTERVAL": "200",
                "OTEL_RESOURCE_ATTRIBUTES": "service.version=2026.8.25",
            }
            services = [night.start("trigger"), night.start("worker")]

            async def told() -> bool:
                return bool(collector.points_named("matins.observed.timestamp"))

            async with session_on(database_url) as session:
                await until(lambda: session.fetchval("select count(*) = 2 from matins.deploy"))
                marked = await session.fetch("select system, version from matins.deploy order by system")
                await until(told)
                await closed_occurrence(session, night, "measured")
            for service in services:
                service.terminate()
                assert await service.ended() == 0
    assert [tuple(one) for one in marked] == [("matins-trigger", "2026.8.25"), ("matins-worker", "2026.8.25")]
    assert {point.attributes["kind"] for point in collector.points_named("matins.alerts.open")} == set(KINDS)
