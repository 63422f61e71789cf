from datetime import UTC, datetime

import pytest

from schemas.states import OccurrenceState
from trigger.backfill_choice import Action, Mode, Past, choose

AT = datetime(2026, 8, 25, 2, 0, tzinfo=UTC)
RULES: list[tuple[str | None, str | None, dict[Mode, Action]]] = [
    (None, None, {"missing": "run", "failed": "leave", "all": "run"}),
    ("missed", "not claimed within catch_up_within", {"missing": "run", "failed": "leave", "all": "run"}),
    ("skipped", "paused", {"missing": "run", "failed": "leave", "all": "run"}),
    ("skipped", "catch_up", {"missing": "run", "failed": "leave", "all": "run"}),
    ("skipped", "backfill cancelled", {"missing": "run", "failed": "leave", "all": "run"}),
    ("skipped", "superseded", {"missing": "leave", "failed": "leave", "all": "leave"}),
    ("skipped", "calendar", {"missing": "leave", "failed": "leave", "all": "leave"}),
    ("coalesced", "into 2026-08-26T02:00Z", {"missing": "run", "failed": "leave", "all": "run"}),
    ("partial", "accounts failed", {"missing": "leave", "failed": "rerun", "all": "rerun"}),
    ("failed", "accounts failed", {"missing": "leave", "failed": "rerun", "all": "rerun"}),
    ("cancelled", "cancel: by ann", {"missing": "leave", "failed": "rerun", "all": "rerun"}),
    ("succeeded", None, {"missing": "leave", "failed": "leave", "all": "leave"}),
    ("expected", None, {"missing": "leave", "failed": "leave", "all": "leave"}),
    ("claimed", None, {"missing": "leave", "failed": "leave", "all": "leave"}),
    ("running", None, {"missing": "leave", "failed": "leave", "all": "leave"}),
]


@pytest.mark.parametrize(("state", "reason", "actions"), RULES)
def test_what_is_done_follows_from_the_state_and_the_mode(
    state: str | None, reason: str | None, actions: dict[Mode, Action]
) -> None:
    for mode, action in actions.items():
        chosen = choose(Past(AT, 1 if state else None, state, reason), mode)
        assert chosen.action == action, chosen.why
        assert chosen.why


def test_every_state_is_decided() -> None:
    assert {state for state, _, _ in RULES} == {None, *OccurrenceState}


@pytest.mark.parametrize("state", [None, *OccurrenceState])
def test_what_is_pruned_is_left(state: str | None) -> None:
    assert choose(Past(AT, None, state, pruned=True), "all").action == "leave"
