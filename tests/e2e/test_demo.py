"""The demo, as a person runs it: everything that it checks holds, and it ends in order."""

import os
import subprocess
import sys

import pytest

from examples.servers.find import BROKER_VARIABLE, DATABASE_VARIABLE, MANAGEMENT_VARIABLE, Broker
from tests.support.processes import ROOT

SECONDS = 240


@pytest.mark.drill
@pytest.mark.timeout(SECONDS + 10)
def test_everything_holds(administrator_url: str, broker: Broker) -> None:
    given = {DATABASE_VARIABLE: administrator_url, BROKER_VARIABLE: broker.url}
    if broker.management_url is not None:
        given[MANAGEMENT_VARIABLE] = broker.management_url
    done = subprocess.run(
        [sys.executable, "-m", "examples.billing.demo", "--accounts", "1100"],
        cwd=ROOT,
        env=os.environ | given,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Everything held" in done.stdout
    assert "FAILED" not in said
    assert done.stdout.count("SIGKILL") == 2, "a trigger and a worker died"
    assert "\x1b" not in done.stdout, "plain where nobody watches a terminal"


def test_too_few_accounts_are_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.billing.demo", "--accounts", "7"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 2
    assert "a whole number from 100" in done.stderr
