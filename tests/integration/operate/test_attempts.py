"""Who attempted an occurrence, how late after it was due, who won; and what each process has won of a job."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from schemas.occurrence import Identity
from shared.fleet import Instance, register_instance
from shared.postgres import Session
from shared.terminal import Refused
from shared.terminal_tables import Times
from tests.integration.operate.night import ORDER
from tests.integration.trigger.support import DAY, DUE, LEASE, MINUTE, job_at, planned
from tests.support.ledger import session_on
from trigger.attempts import job_attempts, occurrence_attempts
from trigger.claim import Claimant, claim_due
from trigger.commands_attempts import print_attempts, print_tally
from trigger.operate import fire

SECOND = timedelta(seconds=1)
NIGHT = Identity("nightly", DUE)


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    """A database in which three triggers in two regions attempted an instant, one after the other; the first won."""
    async with session_on(database_url) as opened:
        job = job_at()
        await planned(opened, job, DUE - DAY)
        for number, region in enumerate(("eu-1", "eu-1", "us-1")):
            name = f"trigger-{number}"
            await register_instance(opened, Instance(name, "trigger", f"host-{number}", "0.1.0", region, ""), {})
            await opened.execute("update matins.instance set started_at = $1", DUE - DAY)
            await claim_due(opened, job, 1, Claimant(name, region, LEASE), now=DUE + (1 + number) * SECOND)
        yield opened


async def test_each_attempt_on_an_occurrence_is_told(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    found = await occurrence_attempts(session, NIGHT)
    told = [(one["instance"], one["host"], one["region"], one["won"], one["late_seconds"]) for one in found["attempts"]]
    assert told == [
        ("trigger-0", "host-0", "eu-1", True, 1.0),
        ("trigger-1", "host-1", "eu-1", False, 2.0),
        ("trigger-2", "host-2", "us-1", False, 3.0),
    ]
    assert {one["version"] for one in found["attempts"]} == {"0.1.0"}
    assert (found["state"], found["claimed_by"]) == ("claimed", "trigger-0")
    orjson.dumps(found)
    print_attempts(found, Times())
    printed = capsys.readouterr().out
    assert "nightly:2026-08-25T02:00Z: claimed" in printed
    assert "2026-08-25 02:00:03Z  3.0s" in printed


async def test_attempts_and_wins_of_a_job_are_told_by_process(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    found = await job_attempts(session, "nightly", DUE)
    told = [(one["instance"], one["attempts"], one["wins"]) for one in found["instances"]]
    assert told == [("trigger-0", 1, 1), ("trigger-1", 1, 0), ("trigger-2", 1, 0)]
    assert found["instances"][2]["median_late_seconds"] == 3.0
    orjson.dumps(found)
    print_tally(found, Times())
    assert "host-2" in capsys.readouterr().out
    assert (await job_attempts(session, "nightly", DUE + MINUTE))["instances"] == []


async def test_one_that_was_fired_by_hand_names_who_did(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    await session.execute(
        "update matins.occurrence set state = 'missed', reason = 'x', claimed_at = null where scheduled_at = $1", DUE
    )
    await planned(session, job_at(), DUE + DAY)
    await fire(session, Identity("nightly", DUE + DAY), replace(ORDER, host="desk"), now=DUE + DAY)
    found = await occurrence_attempts(session, Identity("nightly", DUE + DAY))
    assert [(one["instance"], one["host"], one["won"]) for one in found["attempts"]] == [(ORDER.instance, "desk", True)]
    print_attempts(found, Times())
    assert "fired by ann: the tax service is back" in capsys.readouterr().out


async def test_what_is_unknown_is_refused_with_what_is_near(session: Session) -> None:
    with pytest.raises(Refused, match="did you mean nightly"):
        await job_attempts(session, "nightl", DUE)
    with pytest.raises(Refused, match="is not on the plan; nearest: 2026-08-25T02:00Z"):
        await occurrence_attempts(session, Identity("nightly", DUE + MINUTE))
