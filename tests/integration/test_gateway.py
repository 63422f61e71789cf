"""The gateway before the triggers: whom it asks, what it asks again and what never, and what it says of callers."""

import base64
import http.client
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from examples.servers.server import wait_until
from tests.support.gateway import PASSWORD, PERSON, Behind, Gateway, Names

ONE, OTHER, NOBODY = "127.0.0.2", "127.0.0.3", "127.0.0.4"
WITHIN_SECONDS = 15.0
MOST_BYTES = 64 * 1024


def signed_in(person: str = PERSON, password: str = PASSWORD) -> dict[str, str]:
    """Give the header by which somebody says to a server who they are."""
    return {"Authorization": f"Basic {base64.b64encode(f'{person}:{password}'.encode()).decode()}"}


@dataclass(frozen=True)
class Place:
    """A gateway, the names it looks up, and the consoles of two triggers on one port, the endpoint of one."""

    gateway: Gateway
    names: Names
    one: Behind
    other: Behind
    endpoint: Behind

    def call(
        self, method: str, path: str = "/", body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, str, http.client.HTTPMessage]:
        """Make one request of the gateway; give status, body and headers of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=WITHIN_SECONDS)
        try:
            connection.request(method, path, body, signed_in() | (headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers
        finally:
            connection.close()

    def live_at(self, *addresses: str) -> None:
        """Have these be the triggers' addresses, and return when the gateway knows; nothing is seen of that."""
        if self.names.addresses != addresses:
            self.names.addresses = addresses
            before = self.names.asked
            wait_until(
                lambda: bool(self.call("GET")[0]) and self.names.asked > before, WITHIN_SECONDS, self.gateway.log
            )
        for behind in (self.one, self.other, self.endpoint):
            behind.seen.clear()


def refused(method: str) -> str:
    """Give what the gateway logs when nobody listens for a request that it hands on."""
    return f'{method} / HTTP/1.1", upstream: "http://{NOBODY}'


@pytest.fixture(scope="module")
def whole() -> Iterator[Place]:
    """All of it, running."""
    with ExitStack() as stack:
        names = stack.enter_context(Names(ONE, OTHER))
        one = stack.enter_context(Behind(ONE))
        other = stack.enter_context(Behind(OTHER, one.port))
        endpoint = stack.enter_context(Behind(ONE))
        gateway = stack.enter_context(Gateway(names.port, one.port, endpoint.port))
        yield Place(gateway, names, one, other, endpoint)


@pytest.fixture
def place(whole: Place) -> Place:
    """The same, with nothing broken."""
    whole.one.breaks = False
    return whole


def test_the_program_itself_takes_the_configuration(place: Place) -> None:
    said = place.gateway.judged()
    assert "syntax is ok" in said
    assert "test is successful" in said
    assert "[warn]" not in said


def test_calls_and_reports_go_to_the_endpoint_and_all_else_to_the_console(place: Place) -> None:
    place.live_at(ONE)
    assert place.call("POST", "/v1/jobs/invoice-run/occurrences?x=1", b"{}")[0] == 200
    assert place.call("POST", "/v1/check-ins/backup", b"{}")[0] == 200
    assert [one.path for one in place.endpoint.seen] == ["/v1/jobs/invoice-run/occurrences?x=1", "/v1/check-ins/backup"]
    paths = ["/", "/jobs/a%2Fb?page=2", "/v1/jobs/a%2Fb/occurrences/more", "/v1/check-ins/"]
    for path in paths:
        assert place.call("GET", path)[0] == 200
    assert [one.path for one in place.one.seen] == paths
    assert len(place.endpoint.seen) == 2


def test_where_triggers_live_is_looked_up_again(place: Place) -> None:
    for behind in (place.one, place.other):
        place.live_at(behind.address)
        assert place.call("GET")[1] == f"{behind.address}:{behind.port}"


def test_a_get_goes_on_to_the_next_trigger_where_one_is_gone_or_breaks(place: Place) -> None:
    place.live_at(NOBODY, ONE, OTHER)
    place.one.breaks = True

    def tried_all() -> bool:
        assert place.call("GET")[:2] == (200, f"{OTHER}:{place.other.port}")
        return bool(place.one.seen) and refused("GET") in place.gateway.log()

    wait_until(tried_all, WITHIN_SECONDS, place.gateway.log)


def test_a_post_goes_on_to_the_next_trigger_only_if_nothing_of_it_was_sent(place: Place) -> None:
    place.live_at(NOBODY, ONE, OTHER)
    place.one.breaks = True
    answers: list[int] = []

    def tried_all() -> bool:
        answers.append(place.call("POST", "/", str(len(answers)).encode())[0])
        taken = place.one.seen and place.other.seen
        return bool(taken) and refused("POST") in place.gateway.log()

    wait_until(tried_all, WITHIN_SECONDS, place.gateway.log)
    taken = {502: place.one.seen, 200: place.other.seen}
    assert {status: [int(one.body) for one in seen] for status, seen in taken.items()} == {
        status: [number for number, found in enumerate(answers) if found == status] for status in taken
    }
    assert set(answers) == {502, 200}


def test_what_a_caller_says_of_where_it_comes_from_is_replaced(place: Place) -> None:
    place.live_at(ONE)
    lies = dict.fromkeys(("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Real-IP", "Forwarded"), "lie")
    host = f"matins.example:{place.gateway.port}"
    place.call("GET", "/", headers={**lies, "X-Forwarded-Proto": "https", "Host": host, "Webhook-Id": "a"})
    (seen,) = place.one.seen
    assert seen.headers["Host"] == host
    assert seen.headers.get_all("X-Forwarded-For") == ["127.0.0.1"]
    assert seen.headers.get_all("X-Forwarded-Proto") == ["http"]
    assert "lie" not in seen.headers.values()
    assert seen.headers["Webhook-Id"] == "a"


def test_a_body_is_as_large_as_the_endpoint_takes_it_and_no_larger(place: Place) -> None:
    place.live_at(ONE)
    assert place.call("POST", "/v1/check-ins/backup", b"x" * MOST_BYTES)[0] == 200
    assert [len(one.body) for one in place.endpoint.seen] == [MOST_BYTES]
    assert place.call("POST", "/v1/check-ins/backup", b"x" * (MOST_BYTES + 1))[0] == 413
    assert len(place.endpoint.seen) == 1


def test_it_does_not_say_of_which_release_it_is_and_refuses_what_it_would_repeat(place: Place) -> None:
    place.live_at(ONE)
    status, text, headers = place.call("PUT")
    assert status == 405
    assert headers["Server"] == "nginx"
    assert "nginx/" not in text
    assert place.one.seen == []


@pytest.mark.parametrize("wrong", [{"Authorization": ""}, signed_in(password="another"), signed_in("somebody")])
def test_who_has_not_signed_in_gets_no_page(place: Place, wrong: dict[str, str]) -> None:
    place.live_at(ONE)
    for method in ("GET", "POST"):
        assert place.call(method, "/jobs/invoice-run", headers=wrong)[0] == 401
    assert place.one.seen == []


def test_the_console_is_told_who_has_signed_in_and_nothing_that_a_caller_says_of_it(place: Place) -> None:
    place.live_at(ONE)
    lie = {"X-Matins-Person": "somebody"}
    unproven = signed_in(password="another") | lie
    assert place.call("GET", "/", headers=lie)[0] == 200
    assert place.call("GET", "/api/v1/status", headers=unproven)[0] == 200
    assert place.call("POST", "/v1/check-ins/backup", b"{}", headers=unproven)[0] == 200
    told = [one.headers.get_all("X-Matins-Person") for one in (*place.one.seen, *place.endpoint.seen)]
    assert told == [[PERSON], None, None]
