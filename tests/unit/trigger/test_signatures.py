"""Who has signed a call, by the Standard Webhooks; and that nobody else is taken for them."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.api_callers import Caller, Key, read_key
from shared.webhook_signing import HEADERS
from tests.support.outside import sign
from trigger.signatures import Unsigned, read_signature, signed_by

# The example of the specification.
KEY = read_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
ID, TIME, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNED = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
OTHER = Key(b"o" * 32)
CALLER = Caller("cron", frozenset({"invoice-run"}), (KEY,))


def headers(identity: str = ID, timestamp: str = str(TIME), signature: str = SIGNED) -> dict[str, list[str]]:
    return dict(zip(HEADERS, ([identity], [timestamp], [signature]), strict=True))


def caller_of(signature: str, *callers: Caller, body: bytes = BODY) -> str | None:
    found = signed_by(callers or (CALLER,), read_signature(headers(signature=signature)), body)
    return found and found[0].name


def test_the_specifications_own_example_is_accepted_and_made() -> None:
    assert caller_of(SIGNED) == "cron"
    assert sign(KEY, ID, TIME, BODY) == SIGNED


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "v1,",
        "v1",
        SIGNED.removeprefix("v1,"),
        SIGNED.replace("v1,", "v1a,"),
        SIGNED.replace("v1,", "v2,"),
        SIGNED[:-4] + "AAA=",
        SIGNED[:-5],
        SIGNED + "x",
        SIGNED.replace("+", "-").replace("/", "_"),
        sign(OTHER, ID, TIME, BODY),
        sign(KEY, ID + "x", TIME, BODY),
        sign(KEY, ID, TIME + 1, BODY),
        sign(KEY, ID, TIME, BODY + b" "),
    ],
)
def test_a_forged_or_mangled_signature_is_nobodys(signature: str) -> None:
    assert caller_of(signature) is None


def test_a_right_signature_over_another_body_is_nobodys() -> None:
    assert caller_of(SIGNED, body=b"") is None
    assert caller_of(SIGNED, body=BODY[:-1]) is None


def test_any_of_several_signatures_by_any_of_several_keys_will_do() -> None:
    rotating = Caller("cron", frozenset(), (OTHER, KEY))
    assert caller_of(SIGNED, rotating) == caller_of(sign(OTHER, ID, TIME, BODY), rotating) == "cron"
    assert caller_of(f"v1a,zzz {sign(OTHER, ID, TIME, BODY)} {SIGNED}") == "cron"
    found = signed_by([rotating], read_signature(headers()), BODY)
    assert found == (rotating, KEY)


def test_after_the_rotation_the_old_key_is_nobodys() -> None:
    assert caller_of(SIGNED, Caller("cron", frozenset(), (OTHER,))) is None


def test_each_caller_is_known_by_their_own_key() -> None:
    other = Caller("other", frozenset(), (OTHER,))
    assert caller_of(SIGNED, other, CALLER) == caller_of(SIGNED, CALLER, other) == "cron"


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_is_missing_or_there_twice_is_no_signature(name: str) -> None:
    with pytest.raises(Unsigned, match="headers"):
        read_signature({key: value for key, value in headers().items() if key != name})
    with pytest.raises(Unsigned, match="headers"):
        read_signature(headers() | {name: headers()[name] * 2})


@pytest.mark.parametrize("identity", ["", "a.b", "a\nb", "a b", "ä", "x" * 201, "a\x00"])
def test_an_id_with_a_dot_a_line_break_or_anything_odd_is_refused(identity: str) -> None:
    with pytest.raises(Unsigned, match="id"):
        read_signature(headers(identity=identity))


@pytest.mark.parametrize(
    "timestamp", ["", "-1", "+1", "1.5", "1e9", " 1", "1\n", "now", "0x10", "٣", str(2**63), "9" * 400]
)
def test_a_time_that_is_no_plain_number_is_refused(timestamp: str) -> None:
    with pytest.raises(Unsigned, match="timestamp"):
        read_signature(headers(timestamp=timestamp))


def test_a_hundred_signatures_are_refused_before_any_is_tried() -> None:
    with pytest.raises(Unsigned, match="signatures"):
        read_signature(headers(signature=" ".join([SIGNED] * 100)))


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=200), st.binary(max_size=40))
def test_whatever_the_headers_say_the_answer_is_a_caller_or_nobody(
    identity: str, timestamp: str, signature: str, body: bytes
) -> None:
    try:
        read = read_signature(headers(identity, timestamp, signature))
    except Unsigned:
        return
    assert signed_by([CALLER], read, body) is None


@given(
    st.binary(min_size=24, max_size=64), st.from_regex(r"\A[!-\-/-~]{1,200}\Z"), st.integers(0, 10**11 - 1), st.binary()
)
def test_what_is_signed_is_accepted_as_it_is_and_in_no_other_way(
    secret: bytes, identity: str, timestamp: int, body: bytes
) -> None:
    key = read_key("whsec_" + base64.b64encode(secret).decode())
    caller = Caller("any", frozenset(), (key,))
    read = read_signature(headers(identity, str(timestamp), sign(key, identity, timestamp, body)))
    assert signed_by([caller], read, body) == (caller, key)
    assert signed_by([caller], read, body + b"x") is None
