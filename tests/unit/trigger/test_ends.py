from datetime import UTC, datetime, timedelta

import pytest

from shared.terminal import Refused
from trigger.ends import end_of, read_lasting, read_until

NOW = datetime(2026, 8, 25, 2, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def test_an_end_is_an_instant_or_a_time() -> None:
    assert read_until("2026-08-25T04:00+02:00", None) == NOW
    assert read_until(None, "90m") == timedelta(minutes=90)
    assert read_lasting("--for", "2d") == 2 * DAY


@pytest.mark.parametrize(
    ("until", "lasting", "told"),
    [
        (None, None, "with --until INSTANT or with --for 8h$"),
        ("2026-08-25T02:00Z", "8h", "not with both"),
        (None, "0h", "--for: '0h' is no time .* write minutes, hours or days: 30m, 8h, 2d"),
        (None, "8", "--for: '8' is no time"),
        (None, "soon", "--for: 'soon' is no time"),
        ("tomorrow", None, "--until: 'tomorrow' is not an instant"),
        ("2026-08-25T02:00", None, "--until: .* names no zone"),
    ],
)
def test_what_is_no_end_is_refused(until: str | None, lasting: str | None, told: str) -> None:
    with pytest.raises(Refused, match=told):
        read_until(until, lasting)


def test_an_end_lies_ahead_and_within_bounds() -> None:
    assert end_of(DAY, NOW, DAY, "a silence") == NOW + DAY
    assert end_of(NOW + DAY, NOW, DAY, "a silence") == NOW + DAY
    for too_late in (NOW + DAY + timedelta(seconds=1), 2 * DAY, timedelta(days=999_999)):
        with pytest.raises(Refused, match="a silence lasts 1 days at most: give a sooner end"):
            end_of(too_late, NOW, DAY, "a silence")
    for past in (NOW, NOW - DAY):
        with pytest.raises(Refused, match=r"a silence ends later than it begins: .* is not after 2026-08-25T02:00Z"):
            end_of(past, NOW, DAY, "a silence")
