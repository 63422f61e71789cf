from collections.abc import Iterable
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.message import MAXIMUM_BYTES, decode, encode
from trigger.messages import LedgerRow, grouped, work_message

NOW = datetime(2026, 8, 25, 2, 0, tzinfo=UTC)


def row(
    account: str, position: int = 1, *, generation: int = 1, attempts: int = 0, starts: int = 0, isolated: bool = False
) -> LedgerRow:
    return LedgerRow(account, position, generation, 0, attempts, starts, isolated)


def accounts(rows: Iterable[LedgerRow], chunk_size: int) -> list[list[str]]:
    return [[one.account for one in group] for group in grouped(rows, chunk_size)]


def test_untouched_accounts_travel_in_chunks_of_the_size_asked_for() -> None:
    assert accounts([row(name) for name in "abcde"], 2) == [["a", "b"], ["c", "d"], ["e"]]
    assert accounts([row(name) for name in "abc"], 1) == [["a"], ["b"], ["c"]]
    assert accounts([], 2) == []


def test_what_was_tried_started_or_isolated_travels_alone() -> None:
    rows = [row("a"), row("b", attempts=1), row("c"), row("d", starts=1), row("e", isolated=True), row("f"), row("g")]
    assert accounts(rows, 10) == [["a"], ["b"], ["c"], ["d"], ["e"], ["f", "g"]]


def test_generations_do_not_mix() -> None:
    assert accounts([row("a"), row("b", generation=2)], 10) == [["a"], ["b"]]


def test_an_isolated_account_says_so() -> None:
    [group] = grouped([row("a", isolated=True)], 10)
    message = work_message(group, job="nightly", occurrence_id=1, scheduled_at=NOW, epoch=3, published_at=NOW)
    assert message.isolated


@settings(deadline=None)
# No ledger row can hold a NUL.
@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=128), max_size=1000)
)
def test_no_message_is_larger_than_a_reader_accepts_and_none_is_lost(names: list[str]) -> None:
    groups = list(grouped([row(name) for name in names], 1000))
    assert [one.account for group in groups for one in group] == names
    for group in groups:
        message = work_message(
            group, job="j" * 63, occurrence_id=2**63 - 1, scheduled_at=NOW, epoch=2**63 - 1, published_at=NOW
        )
        body = encode(message)
        assert len(body) <= MAXIMUM_BYTES
        assert decode(body) == message


def test_the_longest_accounts_are_cut_into_several_messages() -> None:
    groups = list(grouped([row("\1" * 512) for _ in range(100)], 1000))
    assert len(groups) > 1
    for group in groups:
        message = work_message(group, job="j", occurrence_id=1, scheduled_at=NOW, epoch=1, published_at=NOW)
        assert len(encode(message)) <= MAXIMUM_BYTES
