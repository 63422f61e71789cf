"""Who names a job that there is not is offered what is near, and nothing that is far off."""

import pytest

from trigger.reach import unknown_job

KNOWN = ["charge", "invoice-run", "usage-rollup"]


@pytest.mark.parametrize("name", ["invoice-rum", "invoice", "invoicerun", "nvoice-run"])
def test_a_near_name_is_offered(name: str) -> None:
    assert unknown_job(name, KNOWN) == f"there is no job {name!r}; did you mean invoice-run?"


def test_nothing_is_meant_by_a_name_that_is_near_to_none() -> None:
    assert unknown_job("backup", KNOWN) == "there is no job 'backup'; known are charge, invoice-run, usage-rollup"
    many = [f"job-{number}" for number in range(8)]
    assert unknown_job("backup", many).endswith("known are job-0, job-1, job-2, job-3, job-4 and 3 more")
    assert unknown_job("backup", []).endswith("no job is known")
