"""The console's pure decisions about people: forms that are meant, where a request comes from, what claims say."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.console_access import Grants, Oidc
from trigger.console.claims import identified
from trigger.console.forgery import form_word, is_form_word, is_from
from trigger.console.person import MOST_CLAIMS, is_name
from trigger.console.ways import local_path
from trigger.identity_tokens import Unproven

ORIGIN = "https://console.example.com"
OIDC = Oidc("https://i.example.com", "matins", "", Grants(operate=frozenset({"on-call"})), name_claim="name")


def test_each_word_of_a_form_is_another_and_counts_for_its_session_alone() -> None:
    words = {form_word("token") for _ in range(20)}
    assert len(words) == 20
    assert all(is_form_word("token", word) for word in words)
    assert not any(is_form_word("other", word) for word in words)
    # The mask is the word's own: what two words have in common tells nothing.
    assert len({base64.urlsafe_b64decode(word + "==")[32:] for word in words}) == 20


@given(st.text(max_size=200))
def test_any_other_text_is_no_word(text: str) -> None:
    assert not is_form_word("token", text)
    assert not is_form_word("", text)


def test_a_word_of_no_session_is_none() -> None:
    assert not is_form_word("", form_word(""))


@pytest.mark.parametrize(
    ("said", "site", "proven", "meant"),
    [
        ([ORIGIN], ["same-origin"], False, True),
        ([ORIGIN], [], False, True),
        ([], ["same-origin"], False, True),
        ([], [], False, False),
        ([], [], True, True),
        (["null"], [], False, False),
        (["https://evil.example.com"], [], True, False),
        (["http://console.example.com"], [], False, False),
        ([ORIGIN + ":8443"], [], False, False),
        ([ORIGIN, ORIGIN], [], False, False),
        ([ORIGIN], ["cross-site"], False, False),
        ([ORIGIN], ["same-site"], True, False),
        ([ORIGIN], ["none"], False, False),
    ],
)
def test_where_a_request_comes_from(said: list[str], site: list[str], proven: bool, meant: bool) -> None:  # noqa: FBT001 - a row of the table
    assert is_from(ORIGIN, said, site, proven=proven) is meant


@given(st.text(max_size=40) | st.sampled_from(["//a", "/\\a", "/\t/a", "/ /a", "/a\n", "/sign-in?to=/", "https:/a"]))
def test_a_way_leads_to_the_console_itself(text: str) -> None:
    path = local_path(text)
    assert path.startswith("/")
    assert path[1:2] not in {"/", "\\"}
    assert path.isascii()
    assert path.isprintable()
    assert "\\" not in path
    assert not path.startswith("/sign-")


@pytest.mark.parametrize("path", ["/", "/jobs/invoice-run?page=2", "/occurrences/a:2026-08-25T02:00Z+ad-hoc-1"])
def test_a_page_s_own_path_stays(path: str) -> None:
    assert local_path(path) == path


@pytest.mark.parametrize(
    ("name", "fits"),
    [("ann", True), ("Zoë Q.", True), ("ann@example.com", True), ("", False), (" ann", False), ("a\u200bnn", False)],
)
def test_what_somebody_may_be_called(name: str, fits: bool) -> None:  # noqa: FBT001 - a row of the table
    assert is_name(name) is fits


@pytest.mark.parametrize(
    ("claim", "claims", "held"),
    [
        ("groups", {"groups": ["a", "on-call"]}, ("on-call", "a")),
        ("groups", {"groups": "on-call"}, ("on-call",)),
        ("groups", {"groups": {"on-call": True}}, ()),
        ("groups", {"groups": ["on-call", 7, None, "", "x" * 201, "a\nb"]}, ("on-call",)),
        ("groups", {}, ()),
        ("realm_access.roles", {"realm_access": {"roles": ["on-call"]}}, ("on-call",)),
        ("realm_access.roles", {"realm_access": ["roles"]}, ()),
        ("https://x.example/roles", {"https://x.example/roles": ["on-call"]}, ("on-call",)),
    ],
)
def test_what_decides_about_the_role(claim: str, claims: dict[str, Any], held: tuple[str, ...]) -> None:
    oidc = Oidc(OIDC.issuer, OIDC.client_id, "", OIDC.grants, name_claim="name", roles_claim=claim)
    assert identified(oidc, {"name": "ann", "sub": "1"} | claims).claims == held


def test_of_very_many_claims_those_stay_that_decide() -> None:
    claims = {"name": "ann", "sub": "1", "groups": [*(str(number) for number in range(2000)), "on-call"]}
    held = identified(OIDC, claims).claims
    assert len(held) == MOST_CLAIMS
    assert OIDC.grants.role_of(held) == "operate"


@pytest.mark.parametrize("name", ["email", "groups"])
def test_an_address_that_nobody_has_proved_gives_no_role_either(name: str) -> None:
    oidc = Oidc(OIDC.issuer, OIDC.client_id, "", OIDC.grants, name_claim="name", roles_claim="email")
    claims = {"name": "ann", "sub": "1", "email": "ann@example.com", "groups": ["on-call"]}
    for verified in ({}, {"email_verified": False}, {"email_verified": "true"}):
        with pytest.raises(Unproven, match="email_verified"):
            identified(oidc, claims | {name: ["on-call"]} | verified)
    assert identified(oidc, claims | {"email_verified": True}).claims == ("ann@example.com",)
