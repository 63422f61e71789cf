"""What every answer of the console has, and who is refused before anything is read."""

from contextlib import AsyncExitStack, suppress

import anyio
import pytest

from tests.console.serving import serving
from tests.support.fleet import until
from trigger.console.guarding import HEADERS
from trigger.endpoint import CONNECTIONS_AT_ONCE


@pytest.mark.parametrize("path", ["/", "/static/console.css", "/nowhere", "/?page=0"])
async def test_every_answer_says_what_a_browser_may_do_with_it(database_url: str, path: str) -> None:
    async with serving(database_url) as console:
        answer = await console.get(path)
    assert {name: answer.headers[name.lower()] for name in HEADERS} == HEADERS
    assert "unsafe" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    "host", ["attacker.example", "attacker.example:8082", "127.0.0.1.attacker.example", "", "[::2]"]
)
async def test_a_page_of_somebody_else_s_cannot_read_the_console_through_a_name_of_its_own(
    database_url: str, host: str
) -> None:
    async with serving(database_url) as console:
        answer = await console.get("/", headers={"Host": host})
    assert answer.status in {400, 421}
    assert "Tonight" not in answer.text


@pytest.mark.parametrize("host", ["localhost:8082", "127.0.0.1", "[::1]:8082", "[::1]"])
async def test_the_loopback_interface_has_these_names(database_url: str, host: str) -> None:
    async with serving(database_url) as console:
        assert (await console.get("/", headers={"Host": host})).status == 200


async def test_what_does_not_change_is_kept_for_good_and_pages_are_not(database_url: str) -> None:
    async with serving(database_url) as console:
        page = await console.get("/")
        assert page.headers["cache-control"] == "no-store"
        style = page.text.partition('rel="stylesheet" href="')[2].partition('"')[0]
        assert "immutable" in (await console.get(style)).headers["cache-control"]
        assert "immutable" not in (await console.get("/static/console.css")).headers.get("cache-control", "")


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/?page=0", 400, "page: &#39;0&#39; is not a page; valid is a whole number from 1 to 100000"),
        ("/?show=everything", 400, "show: &#39;everything&#39; is unknown; valid are all, attention, running"),
        ("/?q=a%00", 400, "q: nothing here holds NUL"),
        ("/alerts?job=a%00b", 400, "job: nothing here holds NUL"),
        ("/audit?actor=a%00b", 400, "actor: nothing here holds NUL"),
        ("/nowhere", 404, "There is no such thing"),
        ("/%3Cscript%3E", 404, "There is no such thing"),
    ],
)
async def test_what_cannot_be_answered_says_where_and_what_is_valid(
    database_url: str, path: str, status: int, told: str
) -> None:
    async with serving(database_url) as console:
        answer = await console.get(path)
    assert answer.status == status
    assert told in answer.text
    assert "<script>" not in answer.text


async def test_nothing_is_written_by_who_only_looks(database_url: str) -> None:
    async with serving(database_url) as console:
        for path in ("/", "/jobs/none", "/nowhere"):
            assert (await console.post(path)).status == 403


async def test_who_says_nothing_or_half_of_something_leaves_room_for_others(database_url: str) -> None:
    async with serving(database_url) as console, AsyncExitStack() as stack:
        for number in range(CONNECTIONS_AT_ONCE):
            one = await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", console.console.port))
            if number % 2:
                await one.send(b"GET / HT")
        assert (await console.get("/static/icon.svg")).status == 503

        async def answered() -> bool:
            return (await console.get("/static/icon.svg")).status == 200

        await until(answered)


async def test_half_of_a_second_request_is_not_waited_for_either(database_url: str) -> None:
    whole = b"GET /static/icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with (
        serving(database_url) as console,
        await anyio.connect_tcp("127.0.0.1", console.console.port) as connection,
    ):
        await connection.send(whole)
        answered = b""
        while b"</svg>" not in answered:
            answered += await connection.receive()
        await connection.send(whole[:20])
        with anyio.fail_after(60), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                answered += await connection.receive()
    assert answered.startswith(b"HTTP/1.1 200")
    assert answered.count(b"HTTP/1.1") == 1
