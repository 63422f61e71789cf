"""What an occurrence's state is said to mean: something for every state, and commands that the command line takes."""

import shlex
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any, Final

import pytest
import typer.main

import trigger.command
from schemas.states import OccurrenceState
from tests.integration.trigger.support import DUE, HOUR
from trigger.console.occurrence_words import Known, Words, words_of
from trigger.standing import Standing

COMMANDS: Final = typer.main.get_group(trigger.command.application).commands
FIRES: Final = Standing(None, None, None, "skip", None, None, None, None)
PAUSED: Final = replace(FIRES, paused_at=DUE, paused_by="ann", pause_reason="the price list is wrong")
RETIRED: Final = replace(FIRES, retired_at=DUE, retired_by="bob", retire_reason="replaced")
REASONS: Final = {
    "skipped": (
        "overlap",
        "catch_up",
        "catch_up_at_most",
        "paused",
        "calendar",
        "superseded",
        "retired",
        "backfill: x",
    ),
    "missed": ("not claimed within catch_up_within",),
    "cancelled": ("cancel: by ann: too late",),
    "partial": ("accounts failed",),
    "failed": ("fan_out: OSError: no route",),
}


def occurrence(state: str, **changes: Any) -> dict[str, Any]:
    """Give an occurrence as `facts_of` shows it, of an hour ago."""
    variant = changes.get("variant", "")
    usual: dict[str, Any] = {
        "occurrence": f"nightly{variant}:2026-08-25T02:00Z",
        "job": "nightly",
        "variant": variant,
        "scheduled_at": DUE,
        "due_at": DUE,
        "finish_by": DUE + 3 * HOUR,
        "origin": "schedule",
        "state": state,
        "reason": None,
        "waits_for": None,
        "coalesced_into": "nightly:2026-08-26T02:00Z" if state == "coalesced" else None,
        "ending": None,
        "ending_reason": None,
        "run_id": None,
        "accounts_read": 1200,
        "fan_out_error": None,
        "fan_out_attempts": 0,
        "pruned_before": None,
        "counts": None,
    }
    return usual | changes


def said(
    shown: dict[str, Any], standing: Standing = FIRES, coordination: str = "claim", late: timedelta = HOUR
) -> Words:
    return words_of(Known(shown, standing, coordination, DUE + late))


def every_case() -> list[tuple[dict[str, Any], Standing, str, timedelta]]:
    cases = product(
        OccurrenceState,
        ("", "@w-1", "+ad-hoc-3f9a1c"),
        (FIRES, PAUSED, RETIRED),
        ("claim", "leader", "external", "every", "elsewhere"),
        (-HOUR, HOUR, 9 * HOUR),
    )
    return [
        (occurrence(state.value, variant=variant, reason=reason), standing, coordination, late)
        for state, variant, standing, coordination, late in cases
        for reason in REASONS.get(state.value, (None,))
    ]


def test_every_state_of_every_job_is_told_and_each_command_can_be_typed() -> None:
    typed = set()
    for case in every_case():
        words = said(*case)
        assert words.told.endswith((".", ")")), words
        assert "None" not in words.told + words.advice, words
        for line in words.commands:
            parts = shlex.split(line)
            assert parts[:3] == ["python", "-m", "trigger"]
            COMMANDS[parts[3]].make_context(parts[3], parts[4:], resilient_parsing=False)
            typed.add(parts[3])
    assert typed >= {"fire", "cancel", "rerun", "backfill", "resume", "status", "doctor", "check-in"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"counts": {"total": 0, "succeeded": 0}}, "It ran, and there was no account to run for."),
        ({"counts": {"total": 9, "succeeded": 9}}, "Every account succeeded."),
        (
            {"counts": {"total": 9, "succeeded": 7}},
            "2 of its accounts did not succeed, which its job's partial_ok allows.",
        ),
    ],
)
def test_a_success_says_of_how_many(changes: dict[str, Any], told: str) -> None:
    assert said(occurrence("succeeded", **changes)).told == told


def test_a_bad_end_says_how_many_did_not_succeed_and_why() -> None:
    counts = {"total": 4000, "succeeded": 3990}
    assert said(occurrence("partial", counts=counts, reason="accounts failed")).told == (
        "10 of 4\u202f000 accounts did not succeed."
    )
    deadline = occurrence("partial", counts=counts, reason="deadline: not finished by 05:00")
    assert said(deadline).told == "10 of 4\u202f000 accounts did not succeed: deadline: not finished by 05:00."


def test_nothing_is_advised_that_would_be_refused() -> None:
    pruned = said(occurrence("failed", pruned_before=DUE + HOUR))
    assert (pruned.commands, "run no more" in pruned.advice) == ((), True)
    own = said(occurrence("failed", variant="@w-1"))
    assert own.commands == ()
    ahead = said(occurrence("skipped", reason="cancelled by ann: not now"), late=-HOUR)
    assert ahead.commands == (), "a backfill does not reach into the future"
    for shown in (occurrence("failed"), occurrence("missed", reason="x"), occurrence("skipped", reason="overlap")):
        assert said(shown).commands != ()
        retired = said(shown, RETIRED)
        assert (retired.commands, "nothing of it runs any more" in retired.advice) == ((), True)
    for reason in ("superseded", "calendar"):
        assert said(occurrence("skipped", reason=reason)).commands == ()
    assert said(occurrence("missed", reason="no check-in within heard_within"), coordination="elsewhere").commands == ()


def test_one_that_ends_says_what_it_waits_for() -> None:
    ending = said(occurrence("running", ending="cancel", ending_reason="by ann: too late"))
    assert "nothing of it is started any more (cancel: by ann: too late)" in ending.told
    assert ending.commands == ()


def test_a_source_that_fails_is_told() -> None:
    failing = said(occurrence("claimed", fan_out_error="OSError: no route", fan_out_attempts=3))
    assert "1\u202f200 so far" in failing.told
    assert "Their source has failed 3 times: OSError: no route" in failing.told
