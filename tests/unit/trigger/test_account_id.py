import pytest

from trigger.account_id import checked


@pytest.mark.parametrize("account", ["1", "Äpfel", "a b\n", "x" * 512, "é" * 256, "invalid:no", "\u202e"])
def test_any_text_up_to_512_bytes_is_an_account(account: str) -> None:
    assert checked(account) == (account, None)


@pytest.mark.parametrize(
    ("account", "begins", "problem"),
    [
        ("", "invalid::", "empty"),
        ("x" * 513, "invalid:xxx", "513 bytes"),
        ("é" * 257, "invalid:\\xe9", "514 bytes"),
        ("a\0b", "invalid:a\\x00b:", "NUL"),
        ("a\ud800", "invalid:a\\ud800:", "surrogate"),
        (None, "invalid:None:", "NoneType"),
        (17, "invalid:17:", "int"),
        (b"raw", "invalid:b'raw':", "bytes"),
        (object(), "invalid:object:", "object"),
    ],
)
def test_anything_else_gets_a_name_under_which_it_is_reported(account: object, begins: str, problem: str) -> None:
    stored, said = checked(account)
    assert stored.startswith(begins)
    assert said is not None
    assert problem in said
    assert len(stored.encode()) < 512
    assert stored.isascii()


def test_two_that_look_alike_at_their_beginning_stay_apart() -> None:
    assert checked("x" * 600)[0] != checked("x" * 601)[0]
