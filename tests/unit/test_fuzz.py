"""Readers of what other people write, fed with anything: each gives a value or its own error, and nothing else."""

import contextlib
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.message import MAXIMUM_ACCOUNT_BYTES, NewerMessage, UnreadableMessage, WorkMessage, decode, encode
from schemas.occurrence import parse_identity
from shared.accounts import GeneratedAccounts, SqlAccounts
from shared.calls import Handled
from shared.decisions import Backoff, Decisions
from shared.declaration import FaultyDeclaration
from shared.job import Cron, Job, Outside, PerAccount, SetBased
from shared.masking import plain, plain_traceback, plain_value
from shared.settings import FaultySettings, load_settings, setting_rows
from trigger.account_id import INVALID, checked
from worker.outcome import of_chunk
from worker.outside import LARGEST_RESULT, result_of

# The first text of all characters waits until a table of them is made.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ANY_TEXT = st.text(st.characters(), max_size=200)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | ANY_TEXT
    | st.binary(max_size=20)
    | st.timedeltas()
    | st.datetimes(timezones=st.none() | st.just(UTC))
    | st.just(object()),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(ANY_TEXT | st.integers(), inner),
    max_leaves=6,
)
MESSAGE: dict[str, Any] = {
    "version": 1,
    "job": "invoice-run",
    "occurrence_id": 7,
    "scheduled_at": "2026-08-25T02:00:00Z",
    "generation": 1,
    "epoch": 0,
    "published_at": "2026-08-25T02:00:00Z",
    "accounts": ["0123"],
    "isolated": False,
}
JOB: dict[str, Any] = {
    "schedule": Cron("0 2 * * *"),
    "accounts": SqlAccounts("select 1"),
    "handler": PerAccount("billing:invoice"),
    "decisions": Decisions(
        catch_up="latest",
        catch_up_within=timedelta(hours=1),
        overlap="skip",
        start_within=timedelta(hours=1),
        finish_within=timedelta(hours=1),
    ),
}
DECISIONS = ("catch_up", "catch_up_within", "overlap", "start_within", "finish_within")


@unhurried
@given(st.dictionaries(st.sampled_from(sorted(MESSAGE)), JSON, max_size=3), st.sets(st.sampled_from(sorted(MESSAGE))))
def test_a_message_with_any_values_in_its_fields(changed: dict[str, Any], left_out: set[str]) -> None:
    body = _json({name: value for name, value in (MESSAGE | changed).items() if name not in left_out - {"version"}})
    with contextlib.suppress(UnreadableMessage, NewerMessage):
        message = decode(body)
        assert decode(encode(message)) == message
        assert all(account and "\0" not in account for account in message.accounts)
        assert 1970 <= message.scheduled_at.year <= 9000


def _json(value: Any) -> bytes:
    import json  # noqa: PLC0415 - the lax writer: it lets NaN and half characters through, as a stranger might

    return json.dumps(value, ensure_ascii=True).encode()


@unhurried
@given(st.lists(ANY_TEXT, min_size=1, max_size=5))
def test_a_message_brings_every_account_that_it_may_carry_as_it_is(accounts: list[str]) -> None:
    sound = tuple(account for account in accounts if checked(account)[1] is None)
    if sound:
        instant = datetime(2026, 8, 25, 2, tzinfo=UTC)
        message = WorkMessage(
            job="a", occurrence_id=1, scheduled_at=instant, generation=1, published_at=instant, accounts=sound
        )
        assert decode(encode(message)).accounts == sound


@unhurried
@given(ANYTHING)
def test_any_account_is_stored_as_it_is_or_under_a_name_that_says_that_it_is_not(account: object) -> None:
    stored, problem = checked(account)
    stored.encode()
    assert stored
    assert "\0" not in stored
    assert len(stored.encode()) <= MAXIMUM_ACCOUNT_BYTES
    if problem is None:
        assert stored == account
    else:
        assert stored.startswith(INVALID)
        assert stored.isascii()


@pytest.mark.parametrize(
    "account",
    [
        "o'b\";--",
        "'; drop table account; --",
        "$1",
        "%s",
        "../../etc/passwd",
        "a.b.*#",
        " leading and trailing ",
        "\u202eright to left",
        "\u200f",
        "e\u0301",
        "\u00e9",
        "000123",
        "08",
        "1e3",
        "true",
        "null",
        "12345678901234567890",
        "🧾",
        "\t",
        "\x1b[31m",
        "<script>alert(1)</script>",
    ],
)
def test_odd_ids_are_accounts_like_any_other(account: str) -> None:
    assert checked(account) == (account, None)


@unhurried
@given(ANY_TEXT | st.from_regex(r"[a-z][a-z0-9-]{0,5}(@\w)?:\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z"))
def test_any_text_is_an_identity_or_no_occurrence(text: str) -> None:
    with contextlib.suppress(ValueError):
        identity = parse_identity(text)
        assert parse_identity(str(identity)) == identity


@unhurried
@given(ANYTHING | JSON)
def test_any_result_is_kept_as_it_is_or_refused(value: object) -> None:
    with contextlib.suppress(ValueError, TypeError):
        kept = result_of(value)
        assert len(repr(kept)) <= 8 * LARGEST_RESULT
        assert not _unequal_numbers(value, kept)


def _unequal_numbers(value: object, kept: object) -> bool:
    """Tell whether a number was kept as another one, or as nothing."""
    if isinstance(value, bool | int | float):
        return kept != value
    if isinstance(value, list | tuple) and isinstance(kept, list):
        return any(_unequal_numbers(one, other) for one, other in zip(value, kept, strict=True))
    if isinstance(value, dict) and isinstance(kept, dict):
        return any(_unequal_numbers(one, kept[name]) for name, one in value.items())
    return False


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        [math.inf],
        {"a": {"b": (1.0, -math.inf)}},
        10**30,
        {1: 2},
        {"a", "b"},
        b"x",
        "\ud800",
        "a\0b",
        object(),
    ],
)
def test_results_that_json_or_the_table_cannot_hold_are_refused(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        result_of(value)


def test_results_that_are_too_deep_or_too_large_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(2_000):
        deep = [deep]
    endless: list[Any] = []
    endless.append(endless)
    for value in (deep, endless, "x" * LARGEST_RESULT):
        with pytest.raises((ValueError, TypeError)):
            result_of(value)


@unhurried
@given(ANYTHING, st.lists(ANYTHING, max_size=3))
def test_any_answer_of_a_set_based_handler_is_read_or_refused(answer: object, named: list[Any]) -> None:
    for said in (answer, Handled(done=named), Handled(done=(), failed={repr(one): one for one in named})):
        with contextlib.suppress(TypeError):
            assert set(of_chunk(said, ["a", "b"])) == {"a", "b"}


@unhurried
@given(st.sampled_from([row[0] for row in setting_rows()]), ANY_TEXT.filter(lambda text: "\0" not in text))
def test_a_setting_with_any_value_is_read_or_refused_by_name(variable: str, value: str) -> None:
    required = {
        "MATINS_ENVIRONMENT": "test",
        "MATINS_JOBS": "jobs",
        "MATINS_DATABASE_URL": "postgresql://u@h/d",
        "MATINS_BROKER_URL": "amqp://u@h/",
    }
    try:
        load_settings(required | {variable: value})
    except FaultySettings as error:
        assert variable in str(error)  # noqa: PT017 - most values are refused, some are not


@unhurried
@given(st.sampled_from(["name", *JOB, "max_tries", "backoff", "queue", "partial_ok", "on_finish_within"]), ANYTHING)
def test_a_job_with_any_value_is_declared_or_refused(part: str, value: object) -> None:
    with contextlib.suppress(FaultyDeclaration):
        Job(**({"name": "a"} | JOB | {part: value}))


@unhurried
@given(
    st.sampled_from(["handler", "role", "timeout", "chunk_size", "settle", "concurrency", "key_valid_for"]), ANYTHING
)
def test_a_handler_with_any_value_is_declared_or_refused(part: str, value: object) -> None:
    kinds: list[tuple[type[Any], dict[str, Any]]]
    kinds = [(PerAccount, {}), (SetBased, {}), (Outside, {"key_valid_for": timedelta(hours=1)})]
    for kind, others in kinds:
        with contextlib.suppress(FaultyDeclaration):
            kind(**({"handler": "a:b"} | others | {part: value}))


@unhurried
@given(st.sampled_from(DECISIONS), ANYTHING)
def test_decisions_with_any_value_are_taken_or_refused(part: str, value: object) -> None:
    made = {name: getattr(JOB["decisions"], name) for name in DECISIONS}
    with contextlib.suppress(FaultyDeclaration):
        Decisions(**(made | {part: value}))


@unhurried
@given(ANYTHING, ANYTHING)
def test_sources_and_waits_with_any_value_are_taken_or_refused(first: object, second: object) -> None:
    for declare in (
        lambda: SqlAccounts(first, page_size=second),  # type: ignore[arg-type]  # mistakes of an author
        lambda: SqlAccounts("select 1", role=first),  # type: ignore[arg-type]  # mistakes of an author
        lambda: GeneratedAccounts(first, page_size=second),  # type: ignore[arg-type]  # mistakes of an author
        lambda: Backoff(first=first, factor=second),  # type: ignore[arg-type]  # mistakes of an author
        lambda: Backoff(limit=first, jitter=second),  # type: ignore[arg-type]  # mistakes of an author
    ):
        with contextlib.suppress(FaultyDeclaration):
            declare()


@pytest.mark.parametrize("role", ["none", "a; drop", "A", "x" * 64, "", 7])
def test_a_source_runs_under_no_role_that_is_no_role(role: Any) -> None:
    # `set role none` gives back the login's own rights, which is what a role is there to take away.
    with pytest.raises(FaultyDeclaration, match="role"):
        SqlAccounts("select 1", role=role)
    with pytest.raises(FaultyDeclaration, match="role"):
        PerAccount("a:b", role=role)


@unhurried
@given(st.text(st.characters(), max_size=20_000))
def test_any_text_can_be_said_aloud_on_one_screen(text: str) -> None:
    for shown in (plain(text), plain_traceback(text)):
        assert len(shown) < 12 * 1024
        shown.encode()
        assert not set(shown) & {"\0", "\x1b", "\r", "\u202e", "\u2028"}


@unhurried
@given(ANYTHING)
def test_any_value_can_stand_in_a_line_of_the_log(value: object) -> None:
    _json(plain_value(value))
