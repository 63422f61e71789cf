"""A worker dies in a call to a provider that honours keys: before the charge, and between the charge and its record."""

from typing import Any

import anyio
import pytest

from examples.billing.payments import running_payments
from examples.billing.provider import Behaviour, Provider
from shared.postgres import Session
from tests.support.ledger import ledger
from tests.support.nights import assert_night
from tests.support.processes import Deployment

pytestmark = [pytest.mark.drill, pytest.mark.timeout(90)]

ACCOUNTS = 10
UNCHARGED, CHARGED = "a000003", "a000005"
HELD_SECONDS = 30.0
JOBS = """
jobs = [nightly("charge", Outside("examples.billing.charges:charge", key_valid_for=hours(24)))]
"""


async def test_a_worker_dies_before_and_after_the_charge(deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS)
    provider = Provider()
    provider.behave(UNCHARGED, Behaviour(hold=True))
    provider.behave(CHARGED, Behaviour(hold=True, after_effect=True))
    with running_payments(provider) as address:
        deployed.start("trigger")
        victim = deployed.start("worker", example_payments_url=address)
        assert await anyio.to_thread.run_sync(provider.wait_for_held, 2, HELD_SECONDS)
        victim.kill()
        before = charges(provider)
        assert (before[UNCHARGED]["effects"], before[CHARGED]["effects"]) == (0, 1)
        provider.behave(UNCHARGED, Behaviour())
        provider.behave(CHARGED, Behaviour())
        deployed.start("worker", example_payments_url=address)
        row = await assert_night(session, deployed, "charge", ACCOUNTS)
    found = charges(provider)
    assert found[CHARGED]["calls"] == 2, "called again, under the same key"
    assert {one["effects"] for one in found.values()} == {1}
    assert len(found) == ACCOUNTS
    rows = await ledger(session, row["id"])
    assert {one["attempts"] for one in rows.values()} == {1}, "its worker's death charges no account"
    assert all(rows[account]["result"]["receipt"] == one["receipt"] for account, one in found.items())
    name = f"charge:{deployed.night:%Y-%m-%dT%H:%MZ}"
    deployed.judging.outside_effects = {(name, account): one["effects"] for account, one in found.items()}


def charges(provider: Provider) -> dict[str, Any]:
    """Give, by account, what the provider knows; a second key of one account would show as a second effect."""
    known: Any = provider.counts()["keys"]
    by_account: dict[str, Any] = {UNCHARGED: {"effects": 0}}
    for one in known.values():
        if "account" in one:
            former = by_account.get(one["account"], {"effects": 0})
            by_account[one["account"]] = one | {"effects": former["effects"] + one["effects"]}
    return by_account
