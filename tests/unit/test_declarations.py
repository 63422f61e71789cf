from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from shared.calls import AccountCall, ChunkCall
from shared.declaration import FaultyDeclaration, collecting_faults
from shared.definition import definition_of, fingerprint
from shared.errors import MatinsError
from shared.job import (
    Backoff,
    Cron,
    Decisions,
    GeneratedAccounts,
    Job,
    Outside,
    PerAccount,
    SetBased,
    SqlAccounts,
    hours,
    minutes,
    seconds,
)
from shared.load import load_jobs
from shared.packages import AmbiguousPackage, check_packages
from tests.support.ledger import DECISIONS, job_with


async def handler(call: AccountCall) -> None:
    """Do nothing."""


def test_a_missing_decision_prints_a_block_to_paste() -> None:
    with pytest.raises(FaultyDeclaration) as caught:
        Decisions(catch_up="latest", catch_up_within=hours(1), start_within=minutes(1))  # type: ignore[call-arg]  # the mistake under test
    told = str(caught.value)
    assert told.startswith("overlap, finish_within: must be decided")
    assert "\n# from shared.job import Decisions, hours, minutes\ndecisions=Decisions(\n    catch_up=" in told
    with pytest.raises(FaultyDeclaration, match="decisions=Decisions"):
        Job("a", Cron("0 2 * * *"), SqlAccounts("select 1"), PerAccount(handler))  # type: ignore[call-arg]  # the mistake under test


def decisions_with(**changes: Any) -> Decisions:
    usual: dict[str, Any] = {
        "catch_up": "latest",
        "catch_up_within": hours(20),
        "overlap": "skip",
        "start_within": minutes(10),
        "finish_within": hours(3),
    }
    return Decisions(**(usual | changes))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"catch_up": "all"}, 'catch_up_at_most: must be decided with catch_up="all"; valid: catch_up_at_most=100'),
        ({"catch_up": "all", "catch_up_at_most": 9}, 'catch_up_pace: must be decided with catch_up="all"'),
        ({"catch_up": "all", "catch_up_at_most": 0, "catch_up_pace": minutes(1)}, "catch_up_at_most: is 0"),
        ({"catch_up": "all", "catch_up_at_most": 1001, "catch_up_pace": minutes(1)}, "number from 1 to 1000"),
        ({"catch_up": "all", "catch_up_at_most": 9, "catch_up_pace": 5}, "catch_up_pace: is 5"),
        ({"catch_up_at_most": 9}, 'catch_up_at_most: is given, and means nothing without catch_up="all"'),
        ({"catch_up": "skip", "catch_up_pace": minutes(1)}, "catch_up_pace: is given, and means nothing"),
        ({"overlap": "queue"}, '"skip" | "queue_one" | "allow" | "cancel_previous"'),
        ({"overlap_by": "account"}, 'overlap_by: is "account", and only occurrences that run beside one another'),
        ({"overlap": "allow", "overlap_by": "accounts"}, 'overlap_by: is \'accounts\'; valid: "job" | "account"'),
        ({"no_progress_within": 60}, "no_progress_within: is 60; valid: a duration of at least 1s"),
        ({"no_progress_within": minutes(0)}, "no_progress_within: is 0s"),
    ],
)
def test_what_a_policy_needs_is_demanded_and_what_it_does_not_know_is_refused(
    changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(FaultyDeclaration) as refused:
        decisions_with(**changes)
    assert told in str(refused.value)


def test_decisions_that_were_not_made_leave_the_definition_as_earlier_releases_wrote_it() -> None:
    def told(**changes: Any) -> dict[str, Any]:
        job = Job("a", Cron("0 2 * * *"), SqlAccounts("select 1"), PerAccount(handler), decisions_with(**changes))
        found: dict[str, Any] = definition_of(job)["decisions"]
        return found

    earlier = {"catch_up", "catch_up_within", "overlap", "start_within", "finish_within"}
    assert set(told()) == earlier
    every = told(catch_up="all", catch_up_at_most=9, catch_up_pace=minutes(1), overlap="allow", overlap_by="account")
    assert set(every) - earlier == {"catch_up_at_most", "catch_up_pace", "overlap_by"}
    assert every["catch_up_pace"] == 60
    assert told(no_progress_within=minutes(3))["no_progress_within"] == 180


def test_all_faults_of_a_job_are_told_at_once_with_their_places() -> None:
    with collecting_faults():
        job = Job(
            "Invoice Run",
            schedule=Cron("99 * * * *", zone="Europe/Berlin"),
            accounts=SqlAccounts("", page_size=0),
            handler=SetBased("no reference", role="x; drop", chunk_size=5000, timeout=hours(2)),
            decisions=Decisions(
                catch_up="every",  # type: ignore[arg-type]  # the mistake under test
                catch_up_within=seconds(0),
                overlap="skip",
                start_within=5,  # type: ignore[arg-type]  # the mistake under test
                finish_within=hours(1),
            ),
            max_tries=0,
            backoff=Backoff(jitter=2),
            partial_ok=1.5,
            queue="a b",
            on_finish_within="explode",  # type: ignore[arg-type]  # the mistake under test
        )
    told = "\n".join(str(fault) for fault in job.faults)
    for part in (
        "job 'Invoice Run': name:",
        "schedule",
        "page_size",
        "query",
        "handler: is 'no reference'; valid: \"package.module:function\"",
        "handler: role",
        "handler: chunk_size",
        "handler: timeout",
        'decisions: catch_up: is \'every\'; valid: "latest" | "all" | "skip"',
        "decisions: catch_up_within",
        "decisions: start_within: is 5",
        "max_tries",
        "backoff: jitter",
        "partial_ok",
        "queue",
        'on_finish_within: is \'explode\'; valid: "alert" | "stop"',
    ):
        assert part in told


def test_arguments_that_are_left_out_or_misspelt_are_told_with_their_places() -> None:
    with collecting_faults():
        job = Job(
            "a",
            schedule=Cron("0 2 * *", zon="UTC"),  # type: ignore[call-arg]  # the mistake under test
            accounts=SqlAccounts("select 1", page_sise=5),  # type: ignore[call-arg]  # the mistake under test
            handler=Outside("a.b:c", key_valid=hours(1)),  # type: ignore[call-arg]  # the mistake under test
            backoff=Backoff(seconds(1)),  # type: ignore[call-arg]  # the mistake under test
            decision=DECISIONS,
        )
        empty = Job("b")  # type: ignore[call-arg]  # the mistake under test
    told = "\n".join(str(fault) for fault in (*job.faults, *empty.faults))
    for part in (
        "job 'a': schedule: zon: is not known; valid: zone",
        "job 'a': schedule: cron text '0 2 * *'",
        "job 'a': accounts: page_sise: is not known; valid: page_size",
        "job 'a': handler: key_valid: is not known; valid: key_valid_for",
        "job 'a': handler: key_valid_for: is left out; valid: how long",
        "job 'a': backoff: arguments: 1 are given without a name",
        "job 'a': decision: is not known; valid: decisions",
        "job 'a': decisions: must be decided",
        "job 'b': schedule: is left out; valid: Cron(\"0 2 * * *\")",
        "job 'b': accounts: is left out; valid: SqlAccounts(",
        "job 'b': handler: is left out; valid: PerAccount(function)",
    ):
        assert part in told
    with pytest.raises(FaultyDeclaration, match=r"(?s)chunk: is not known; valid: chunk_size.*handler: is left out"):
        SetBased(chunk=5)  # type: ignore[call-arg]  # the mistake under test
    with pytest.raises(FaultyDeclaration, match="handler: is given twice"):
        PerAccount(handler, handler=handler)  # type: ignore[misc]  # the mistake under test


def test_durations_and_functions_are_written_as_an_author_writes_them() -> None:
    with pytest.raises(FaultyDeclaration, match="timeout: is 2h; valid: at most 20m"):
        PerAccount(handler, timeout=hours(2))
    with pytest.raises(FaultyDeclaration, match="start_within: is 0s; valid: a duration of at least 1s"):
        replace(DECISIONS, start_within=seconds(0))


async def chunk_handler(call: ChunkCall) -> None:
    """Do nothing."""


async def quoted_handler(call: "ChunkCall") -> None:
    """Do nothing."""


@pytest.mark.parametrize("wrong", [chunk_handler, quoted_handler])
def test_a_handler_of_another_mode_is_refused_naming_both(wrong: Callable[[ChunkCall], Awaitable[None]]) -> None:
    told = rf"{wrong.__name__} takes a ChunkCall, and PerAccount gives it AccountCall or .*; valid: SetBased\(…\)"
    with pytest.raises(FaultyDeclaration, match=told):
        PerAccount(wrong)  # type: ignore[arg-type]  # the mistake under test
    assert SetBased(wrong).faults == ()  # type: ignore[arg-type]  # it gives no Handled, which only its call shows


@pytest.mark.parametrize("wrong", [lambda: None, "a.b", "a:b:c", "a b:c", 5])
def test_a_handler_that_cannot_be_called_with_the_call_is_refused(wrong: object) -> None:
    with pytest.raises(FaultyDeclaration, match="handler"):
        PerAccount(wrong)  # type: ignore[arg-type]  # the mistake under test


def test_parts_of_the_wrong_kind_are_named_with_the_right_ones() -> None:
    with pytest.raises(
        FaultyDeclaration, match=r"tests\.unit\.test_declarations:handler itself; write PerAccount\(handler\)"
    ):
        job_with(handler)  # type: ignore[arg-type]  # the mistake under test


def test_a_definition_tells_two_declarations_apart_and_the_same_one_not() -> None:
    first = fingerprint(definition_of(job_with(PerAccount(handler))))
    assert first == fingerprint(definition_of(job_with(PerAccount(handler))))
    assert first != fingerprint(definition_of(job_with(PerAccount(handler), max_tries=9)))
    assert first != fingerprint(definition_of(job_with(Outside("a.b:c", key_valid_for=hours(1)))))
    assert definition_of(job_with(PerAccount(handler)))["decisions"]["catch_up_within"] == 72_000


def test_modules_are_loaded_with_every_fault_and_the_sound_jobs_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = dedent(
        """
        from shared.job import Cron, Decisions, Job, PerAccount, SqlAccounts, hours, minutes
        D = Decisions(catch_up="latest", catch_up_within=hours(1), overlap="skip", start_within=minutes(1),
                      finish_within=hours(1))
        def job(name, cron="0 2 * * *"):
            return Job(name, Cron(cron), SqlAccounts("select 1"), PerAccount("a.b:c"), D)
        """
    )
    (tmp_path / "sound_module.py").write_text(good + 'jobs = [job("one"), job("two", "61 * * * *"), job("one")]')
    (tmp_path / "broken_module.py").write_text("raise SystemExit(3)")
    (tmp_path / "syntax_module.py").write_text("jobs = [\n)")
    (tmp_path / "far_module.py").write_text(good + "\nPerAccount('a.b:c').timeout = 5")
    (tmp_path / "doubled_module.py").write_text(good + 'jobs = [job("four", "61 * * * *"), job("four", "62 * * * *")]')
    (tmp_path / "empty_module.py").write_text("")
    (tmp_path / "wrong_module.py").write_text(good + 'jobs = [job("three"), 5]')
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ("sound", "broken", "empty", "wrong", "absent", "syntax", "far", "doubled")
    loaded = load_jobs([f"{name}_module" for name in names])
    assert set(loaded.jobs) == {"three"}
    assert loaded.quarantined == ("four", "one", "two")
    told = [str(fault) for fault in loaded.faults]
    assert any("sound_module: job 'two': schedule" in line for line in told)
    assert any("second job named 'one'" in line for line in told)
    assert any("broken_module: cannot be imported: SystemExit: 3" in line for line in told)
    assert any("empty_module: has no list named `jobs`" in line for line in told)
    assert any("wrong_module: `jobs` holds 5" in line for line in told)
    assert any("absent_module: cannot be imported" in line and ", at " not in line for line in told)
    assert any("syntax_module: cannot be imported" in line and "syntax_module.py:2" in line for line in told)
    assert any("far_module: cannot be imported" in line and line.endswith("far_module.py:8") for line in told)
    assert any("second job named 'four'; the first is in module doubled_module" in line for line in told)
    with pytest.raises(FaultyDeclaration):
        loaded.refuse_faults()


def test_a_second_package_of_our_name_is_refused_naming_both_places(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    check_packages([str(tmp_path)])
    (tmp_path / "shared" / "__init__.py").write_text("")
    with pytest.raises(AmbiguousPackage) as caught:
        check_packages([str(tmp_path)])
    assert str(tmp_path / "shared") in str(caught.value)
    assert isinstance(caught.value, MatinsError)


def test_generated_accounts_and_backoff_check_their_numbers() -> None:
    with pytest.raises(FaultyDeclaration, match="page_size: is 20000"):
        GeneratedAccounts("a.b:c", page_size=20_000)
    with pytest.raises(FaultyDeclaration, match="factor"):
        Backoff(factor=0)
    assert Backoff().first == timedelta(seconds=5)
    assert DECISIONS.faults == ()
