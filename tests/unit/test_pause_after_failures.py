from typing import Any

import pytest

from shared.declaration import FaultyDeclaration
from shared.definition import definition_of
from shared.job import Decisions, EachWorker, EveryWorker, PerAccount, hours, minutes
from tests.support.ledger import job_with

HANDLER = PerAccount("billing.invoices:invoice")


@pytest.mark.parametrize("failures", [0, 1001, "three", True, 2.5])
def test_how_many_failures_is_a_whole_number(failures: Any) -> None:
    with pytest.raises(FaultyDeclaration, match=r"pause_after_failures: is .*a whole number from 1 to 1000"):
        job_with(HANDLER, pause_after_failures=failures)


def test_only_a_job_that_asks_for_it_has_it_in_its_definition() -> None:
    assert "pause_after_failures" not in definition_of(job_with(HANDLER))
    assert definition_of(job_with(HANDLER, pause_after_failures=3))["pause_after_failures"] == 3


def test_what_every_worker_runs_for_itself_has_no_failures_in_a_row() -> None:
    skipping = Decisions(
        catch_up="skip", catch_up_within=hours(1), overlap="skip", start_within=minutes(1), finish_within=minutes(5)
    )
    with pytest.raises(FaultyDeclaration, match="pause_after_failures: is given, and means nothing where each worker"):
        job_with(
            EveryWorker("billing.prices:refresh"),
            accounts=EachWorker(),
            coordination="every",
            decisions=skipping,
            pause_after_failures=3,
        )
