"""Whatever a job's code says of its failure is kept, reported and shown as text: bounded, harmless, without secrets."""

from datetime import timedelta
from typing import Any

import orjson
import pytest

from shared.calls import AccountCall, OutsideCall
from shared.job import Backoff, Outside, PerAccount, hours
from shared.terminal_tables import Times
from tests.support.fleet import closed_state, deploy, prepared_for, running_publisher, running_worker, send
from tests.support.ledger import job_with, ledger, running_occurrence, session_on
from trigger.commands_print import print_occurrence
from trigger.show import show_occurrence
from worker.outcome import LONGEST_CLASS, LONGEST_ERROR

AT_ONCE = Backoff(first=timedelta(milliseconds=1), limit=timedelta(milliseconds=1), jitter=0)
PASSWORD = "hunter2hunter2"
TEXTS = {
    "markup": '<script>alert(1)</script> & "quotes" \' -- ; drop table account',
    "terminal": "\x1b[2J\x1b]0;owned\x07\rFAKE LINE\n\n\x1b[31mred",
    "right to left": "\u202egnp.exe \u2066hidden\u2069 \u200f",
    "nul": "a\0b\0",
    "half a character": "a\ud800b",
    "five megabytes": "x" * 5_000_000,
    "a password": f"connect to postgresql://user:{PASSWORD}@db.internal:5432/billing failed",
    "console markup": "[bold red]not ours[/] [link=file:///etc/passwd]click[/link]",
    "nothing": "",
}
LONG_CLASS = "E" * 5_000


async def fail(call: AccountCall) -> None:
    if call.account == "long class":
        raise type(LONG_CLASS, (Exception,), {})("x")
    raise ValueError(TEXTS[call.account])


@pytest.mark.timeout(90)
async def test_errors_of_every_kind_are_kept_and_shown_as_text(
    database_url: str, broker_url: str, prefix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    job = job_with(PerAccount(fail), backoff=AT_ONCE, max_tries=1)
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix)
    await deploy(prepared)
    accounts = [*TEXTS, "long class"]
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        occurrence = await running_occurrence(session, job, accounts)
        async with running_worker(prepared):
            for account in accounts:
                await send(publisher, prepared, job, occurrence, [account])
            assert await closed_state(session, occurrence.id) == "failed"
        rows = await ledger(session, occurrence.id)
        shown = await show_occurrence(session, occurrence.identity)
    assert {(row["state"], row["attempts"]) for row in rows.values()} == {("failed", 1)}
    assert all(len(row["error"]) <= LONGEST_ERROR and len(row["error_class"]) <= LONGEST_CLASS for row in rows.values())
    assert rows["markup"]["error"] == TEXTS["markup"], "what can be kept is kept as it is"
    capfd.readouterr()
    print_occurrence(shown, Times("UTC"))
    printed = capfd.readouterr().out
    assert not set(printed) & set("\0\x07\r\u202e\u2066\u200f")
    assert "\x1b[2J" not in printed
    assert PASSWORD not in printed
    assert PASSWORD not in orjson.dumps(shown).decode()


RESULTS: dict[str, Any] = {
    "set": {1},
    "bytes": b"x",
    "not a number": float("nan"),
    "too large": "x" * 5_000,
    "too deep": None,
    "nul": "a\0b",
    "half a character": "\ud800",
    "thirty digits": 10**30,
    "an object": object(),
}


async def give(call: OutsideCall) -> Any:
    if call.account != "too deep":
        return RESULTS[call.account]
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    return deep


@pytest.mark.timeout(90)
async def test_results_that_cannot_be_kept_fail_their_account_and_repeat_no_effect(
    database_url: str, broker_url: str, prefix: str
) -> None:
    job = job_with(Outside(give, key_valid_for=hours(1)), backoff=AT_ONCE, max_tries=5)
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix)
    await deploy(prepared)
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        occurrence = await running_occurrence(session, job, list(RESULTS))
        async with running_worker(prepared):
            for account in RESULTS:
                await send(publisher, prepared, job, occurrence, [account])
            assert await closed_state(session, occurrence.id) == "failed"
        rows = await ledger(session, occurrence.id)
    assert {(row["state"], row["error_class"], row["attempts"]) for row in rows.values()} == {("failed", "result", 1)}
