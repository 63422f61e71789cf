import contextlib
import json
from datetime import UTC, datetime, timedelta, timezone

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import message as contract
from schemas.json_schemas import json_schemas
from schemas.message import MAXIMUM_BYTES, NewerMessage, UnreadableMessage, WorkMessage, decode, encode, kind_of
from schemas.occurrence import Identity, format_instant, parse_identity
from schemas.report import Counts, Ending, Report, ended
from schemas.states import OccurrenceState
from tests.support.publish_schemas import PUBLISHED, published

DUE = datetime(2026, 8, 25, 2, 0, tzinfo=UTC)
MESSAGE = WorkMessage(
    job="invoice-run", occurrence_id=7, scheduled_at=DUE, generation=1, published_at=DUE, accounts=("0123", "o'neil 🧾")
)
# What the first release writes: a reader of any later one must read it.
FIRST = (
    b'{"version":1,"job":"invoice-run","occurrence_id":7,"scheduled_at":"2026-08-25T02:00:00Z","generation":1,"epoch":0,'
    b'"published_at":"2026-08-25T02:00:00Z","accounts":["0123","o\'neil \xf0\x9f\xa7\xbe"],"isolated":false}'
)


def test_the_published_schemas_are_those_of_the_code() -> None:
    found = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in PUBLISHED.iterdir()}
    assert found == published(), "run `make schemas` if the change is meant"


def test_what_is_written_fits_its_published_schema() -> None:
    found = json_schemas()
    jsonschema.validate(json.loads(encode(MESSAGE)), found["work-message.v1.json"])
    report = Report(counts=Counts(succeeded=3, failed=1))
    jsonschema.validate(json.loads(msgspec.json.encode(report)), found["report.v1.json"])


def test_the_first_release_s_message_is_read_and_written() -> None:
    assert decode(FIRST) == MESSAGE
    assert encode(MESSAGE) == FIRST


def test_an_unknown_field_of_the_same_version_is_accepted() -> None:
    assert decode(FIRST[:-1] + b',"later":{"a":[1]}}') == MESSAGE


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"not json",
        b'"text"',
        FIRST[:-1],
        FIRST + b"x",
        FIRST.replace(b'"generation":1', b'"generation":0'),
        FIRST.replace(b'"generation":1', b'"generation":"1"'),
        FIRST.replace(b'"generation":1', b'"generation":1.5'),
        FIRST.replace(b'"occurrence_id":7', b'"occurrence_id":123456789012345678901234567890'),
        FIRST.replace(b'"0123"', b"123"),
        FIRST.replace(b'"0123"', b'""'),
        FIRST.replace(b'"0123"', b"NaN"),
        FIRST.replace(b'"0123"', b'"\xff"'),
        FIRST.replace(b'"0123"', rb'"a\u0000b"'),
        FIRST.replace(b'"0123"', rb'"a\ud800b"'),
        FIRST.replace(b'"accounts":["0123","o\'neil \xf0\x9f\xa7\xbe"]', b'"accounts":[]'),
        FIRST.replace(b"02:00:00Z", b"02:00:00"),
        FIRST.replace(b'"version":1', b'"version":0'),
        FIRST.replace(b'"version":1,', b""),
        b"[" * 30_000,
        b'{"a":' * 5_000,
        b" " * (MAXIMUM_BYTES + 1),
    ],
)
def test_anything_else_is_unreadable_and_says_why(body: bytes) -> None:
    with pytest.raises(UnreadableMessage, match=r"\w"):
        decode(body)


def test_a_message_is_written_in_an_earlier_version_without_what_that_one_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contract, "FIRST_IN", {"isolated": 2})
    newer = msgspec.structs.replace(MESSAGE, version=2, isolated=True)
    assert b'"isolated":true' in encode(newer, 2)
    assert b"isolated" not in encode(newer, 1)
    assert decode(encode(newer, 1)) == MESSAGE
    assert (kind_of(1), kind_of(2)) == ("matins.work.v1", "matins.work.v2")


def test_a_newer_version_is_told_apart_from_rubbish() -> None:
    with pytest.raises(NewerMessage, match="version 2"):
        decode(b'{"version":2,"anything":"else"}')


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(body: bytes) -> None:
    with contextlib.suppress(UnreadableMessage, NewerMessage):
        decode(body)


@pytest.mark.parametrize(
    ("identity", "written"),
    [
        (Identity("invoice-run", DUE), "invoice-run:2026-08-25T02:00Z"),
        (Identity("invoice-run", DUE + timedelta(seconds=7)), "invoice-run:2026-08-25T02:00:07Z"),
        (Identity("cache", DUE, "@web-1"), "cache@web-1:2026-08-25T02:00Z"),
    ],
)
def test_an_identity_is_written_and_read(identity: Identity, written: str) -> None:
    assert str(identity) == written
    assert parse_identity(written) == identity


def test_an_instant_in_another_zone_is_written_in_utc() -> None:
    berlin = DUE.astimezone(timezone(timedelta(hours=2)))
    assert format_instant(berlin) == "2026-08-25T02:00Z"
    with pytest.raises(ValueError, match="zone"):
        format_instant(DUE.replace(tzinfo=None))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "invoice-run",
        "Invoice:2026-08-25T02:00Z",
        "a:2026-08-25T02:00",
        "a:2026-13-25T02:00Z",
        "a:2026-08-25T02:00+02:00",
    ],
)
def test_any_other_text_is_refused_with_the_accepted_form(text: str) -> None:
    with pytest.raises(ValueError, match="not an occurrence"):
        parse_identity(text)


@pytest.mark.parametrize(
    ("counts", "ending", "partial_ok", "state"),
    [
        (Counts(), None, 0.0, "succeeded"),
        (Counts(succeeded=5), None, 0.0, "succeeded"),
        (Counts(succeeded=9, failed=1), None, 0.0, "partial"),
        (Counts(succeeded=9, failed=1), None, 0.1, "succeeded"),
        (Counts(succeeded=8, failed=1, dead=1), None, 0.1, "partial"),
        (Counts(failed=10), None, 0.5, "failed"),
        (Counts(dead=1), None, 0.0, "failed"),
        (Counts(succeeded=5), "cancel", 0.0, "cancelled"),
        (Counts(succeeded=5), "fan_out", 0.0, "failed"),
        (Counts(succeeded=5, cancelled=5), "deadline", 1.0, "partial"),
    ],
)
def test_how_an_occurrence_ends_follows_from_its_counts(
    counts: Counts, ending: Ending | None, partial_ok: float, state: str
) -> None:
    assert ended(counts, ending, partial_ok) == OccurrenceState(state)
