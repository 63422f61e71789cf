"""Reading what a call asks for, and who may call: any bytes are read or refused; a broken file leaves those before."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.rereading import READ_AGAIN_SECONDS
from tests.support.outside import described, new_key
from trigger.api_answers import STATUS, status_of
from trigger.api_request import Asked, NotTaken, known_callers, read_asked

JSON = "application/json"


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_an_empty_body_asks_for_what_is_due_whatever_it_says_to_be() -> None:
    assert read_asked(b"", "") == read_asked(b"", "text/plain") == read_asked(b"{}", JSON) == Asked()


def test_an_instant_is_read_in_utc() -> None:
    asked = read_asked(b'{"scheduled_at": "2026-08-25T04:00:00+02:00", "job": "x"}', JSON)
    assert asked == Asked(datetime(2026, 8, 25, 2, tzinfo=UTC), "x")


@given(st.binary(max_size=200), st.text(max_size=30))
def test_any_bytes_are_read_or_refused(body: bytes, media_type: str) -> None:
    for kind in (media_type, JSON):
        try:
            asked = read_asked(body, kind)
        except NotTaken as error:
            told = error.outcome
        else:
            told = "malformed"
            assert asked.scheduled_at is None or asked.scheduled_at.tzinfo is UTC
        assert told in {"malformed", "media_type"}


@given(st.datetimes(timezones=st.timezones()) | st.text(max_size=40))
def test_any_instant_is_read_or_refused(instant: datetime | str) -> None:
    text = instant.isoformat() if isinstance(instant, datetime) else instant.encode("unicode_escape").decode()
    told = "malformed"
    try:
        read_asked(b'{"scheduled_at": "%s"}' % text.encode(), JSON)
    except NotTaken as error:
        told = error.outcome
    assert told == "malformed"


def test_a_file_that_is_broken_later_leaves_those_who_were_known() -> None:
    clock, text = Clock(), [described("one", ["x"], new_key())]
    known = known_callers(lambda: text[0], clock)
    assert [caller.name for caller in known.current()] == ["one"]
    text[0] = described("two", ["x"], new_key())
    assert [caller.name for caller in known.current()] == ["one"]
    clock.seconds += READ_AGAIN_SECONDS
    assert [caller.name for caller in known.current()] == ["two"]
    text[0] = "[callers"
    clock.seconds += READ_AGAIN_SECONDS
    assert [caller.name for caller in known.current()] == ["two"]
    assert known.problem is not None
    text[0] = described("three", ["x"], new_key())
    clock.seconds += READ_AGAIN_SECONDS
    assert [caller.name for caller in known.current()] == ["three"]
    assert known.problem is None


def test_a_file_that_is_broken_at_the_start_stops_it() -> None:
    with pytest.raises(ValueError, match="TOML"):
        known_callers(lambda: "[callers")


def test_every_other_word_means_that_nothing_was_proven() -> None:
    assert {status_of(word) for word in ("signature", "timestamp", "issuer", "anything")} == {401}
    assert 401 not in STATUS.values()
