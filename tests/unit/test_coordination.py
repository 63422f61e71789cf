from datetime import timedelta
from typing import Any

import pytest

from shared.declaration import FaultyDeclaration
from shared.definition import definition_of, fingerprint
from shared.job import PerAccount, minutes, seconds
from tests.support.ledger import job_with
from trigger.attempting import delay_elsewhere, uncalled
from trigger.catch_up import CaughtUp, Due

HANDLER = PerAccount("billing.invoices:invoice")
NOW = timedelta(0)


def refused(**values: Any) -> str:
    with pytest.raises(FaultyDeclaration) as caught:
        job_with(HANDLER, **values)
    return str(caught.value)


@pytest.mark.parametrize("coordination", ["claim", "leader", "external"])
def test_a_job_says_who_attempts_it(coordination: Any) -> None:
    assert definition_of(job_with(HANDLER, coordination=coordination))["coordination"] == coordination


def test_another_way_is_refused_naming_those_that_there_are() -> None:
    assert '"claim" | "leader" | "external" | "every"' in refused(coordination="everybody")


def test_a_region_comes_with_a_delay_that_leaves_others_time_to_start() -> None:
    job = job_with(HANDLER, region="eu-1", region_delay=minutes(2))
    assert delay_elsewhere(job, "eu-1") == NOW
    assert delay_elsewhere(job, "us-1") == delay_elsewhere(job, "") == minutes(2)
    assert delay_elsewhere(job_with(HANDLER), "us-1") == NOW


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"region": "eu-1"}, "region_delay: is 0s; valid: a duration of at least 1s"),
        ({"region_delay": minutes(1)}, "region: is ''; valid: a region's name"),
        ({"region": 7, "region_delay": minutes(1)}, "region: is 7; valid: a region's name"),
        ({"region": "eu-1", "region_delay": minutes(10)}, "region_delay: is 10m; valid: less than start_within"),
        ({"region": "eu-1", "region_delay": seconds(9), "coordination": "leader"}, 'valid: coordination="claim"'),
    ],
)
def test_a_region_that_cannot_work_is_refused(values: dict[str, Any], told: str) -> None:
    assert told in refused(**values)


def test_only_a_job_with_a_region_has_one_in_its_definition() -> None:
    assert "region" not in definition_of(job_with(HANDLER))
    near, far = (job_with(HANDLER, region=name, region_delay=minutes(2)) for name in ("eu-1", "us-1"))
    assert definition_of(near)["region_delay"] == 120
    assert fingerprint(definition_of(near)) != fingerprint(definition_of(far))


def test_of_a_job_for_an_outside_scheduler_nothing_runs_by_itself() -> None:
    due: tuple[Any, ...] = tuple(Due(number, None, None) for number in range(5))  # type: ignore[arg-type]  # no time matters here
    found = uncalled(CaughtUp(due[4:], due[3:4], due[:1], due[1:2], due[2:3], due[2:3]))
    assert found == CaughtUp(covered=due[:1], missed=due[1:2])
