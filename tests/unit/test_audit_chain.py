"""A row's bytes and the chain of them, as anybody could compute them; and anchors as they are kept."""

import hashlib
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.audit import FIELDS, GENESIS, canonical, digest, link
from shared.terminal import Refused
from trigger.audit_anchor import anchors_of, read_anchors

ROW: dict[str, Any] = {
    "id": 7,
    "at": datetime(2026, 8, 25, 2, 0, 0, 5, tzinfo=UTC),
    "xid": "812",
    "kind": "cancel",
    "job": "invoice-run",
    "occurrence_id": 3,
    "instance": "3f2a",
    "version": None,
    "actor": "ann",
    "actor_kind": "operator",
    "reason": "falscher Preis: 5 €",
    "detail": '{"after": "ending"}',
}
BYTES = (
    "matins.audit.1\n1:7\n27:2026-08-25T02:00:00.000005Z\n3:812\n6:cancel\n11:invoice-run\n1:3\n4:3f2a\n-\n3:ann\n"
    '8:operator\n21:falscher Preis: 5 €\n19:{"after": "ending"}\n'
)
HASH = "ab" * 32


def test_a_row_has_these_bytes() -> None:
    assert canonical(ROW).decode() == BYTES
    assert digest(ROW, b"salt") == hashlib.sha256(b"salt" + BYTES.encode()).digest()
    assert link(GENESIS, digest(ROW, b"")) == hashlib.sha256(bytes(32) + digest(ROW, b"")).digest()


def test_the_zone_of_an_instant_does_not_count() -> None:
    elsewhere = ROW["at"].astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert canonical(ROW | {"at": elsewhere}) == canonical(ROW)


def test_what_no_field_can_be_is_refused() -> None:
    with pytest.raises(TypeError):
        canonical(ROW | {"detail": {"after": 1}})
    with pytest.raises(KeyError):
        canonical({name: ROW[name] for name in FIELDS if name != "xid"})


@given(
    st.lists(st.one_of(st.none(), st.text()), min_size=4, max_size=4),
    st.lists(st.none() | st.text(), min_size=4, max_size=4),
)
def test_two_rows_never_have_the_same_bytes(one: list[str | None], other: list[str | None]) -> None:
    names = ("job", "actor", "reason", "detail")
    first, second = (canonical(ROW | dict(zip(names, values, strict=True))) for values in (one, other))
    assert (first == second) == (one == other)


def test_anchors_are_read_from_lines_and_logs(tmp_path: Path) -> None:
    kept = tmp_path / "heads.log"
    kept.write_text(
        f"{HASH}@5\n"
        f'{{"ts": "x", "event": "audit sealed", "position": 9, "hash": "{HASH}", "rows": 4}}\n'
        '{"event": "audit sealed", "position": "nine"}\n'
        '{"event": "claimed", "position": 3}\n'
        f"2026-08-25T02:00:00.000Z info audit sealed position=12 hash={HASH} rows=1\n"
        "nothing\n"
    )
    assert read_anchors(str(kept)) == dict.fromkeys((5, 9, 12), bytes.fromhex(HASH))
    assert read_anchors(f" {HASH}@7 ") == {7: bytes.fromhex(HASH)}


def test_anchors_that_contradict_one_another_are_refused() -> None:
    with pytest.raises(Refused, match="two hashes of position 5"):
        anchors_of([f"{HASH}@5", f"{'cd' * 32}@5"])


def test_a_file_without_anchors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("nothing\n")
    with pytest.raises(Refused, match="no line"):
        read_anchors(str(tmp_path / "empty"))
