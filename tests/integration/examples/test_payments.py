"""The payment provider keeps one effect for each key, and `charge` reads its answers."""

import http.client
import json
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from examples.billing import charges
from examples.billing.accounts import HOSTILE_ID
from examples.billing.charges import PaymentsFailed, charge
from examples.billing.payments import running_payments
from examples.billing.provider import EVERY_ACCOUNT, Behaviour, Provider
from shared.job import GiveUp, RetryLater
from tests.integration.examples.support import outside_call


def request(
    address: str, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=10)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_a_repeated_call_gets_the_first_receipt(provider: Provider) -> None:
    first = charge(outside_call("only"))
    assert charge(outside_call("only", attempt=2)) == first == {"receipt": "receipt-000001"}
    assert charge(outside_call("another")) == {"receipt": "receipt-000002"}
    counts = provider.counts()
    assert (counts["calls"], counts["effects"], counts["replays"]) == (3, 2, 1)
    assert counts["answers"] == {"200": 1, "201": 2}


def test_many_threads_with_one_key_make_one_effect(provider: Provider) -> None:
    with ThreadPoolExecutor(16) as threads:
        receipts = Counter(
            receipt["receipt"] for receipt in threads.map(lambda _: charge(outside_call("only")), range(200))
        )
    assert len(receipts) == 1
    counts = provider.counts()
    assert (counts["calls"], counts["effects"], counts["replays"]) == (200, 1, 199)


def test_many_threads_with_many_keys_make_an_effect_for_each(provider: Provider) -> None:
    with ThreadPoolExecutor(16) as threads:
        receipts = list(threads.map(lambda number: charge(outside_call(f"account {number % 100}")), range(300)))
    assert len({receipt["receipt"] for receipt in receipts}) == 100
    assert provider.counts()["effects"] == 100


def test_a_key_with_another_body_is_a_conflict() -> None:
    provider = Provider()
    headers = {"Idempotency-Key": "k"}
    body = b'{"account": "only", "occurrence": "charge:2026-08-25T02:00Z"}'
    with running_payments(provider) as address:
        assert request(address, "POST", "/charges", body, headers)[0] == 201
        assert request(address, "POST", "/charges", body.replace(b"only", b"other"), headers)[0] == 409
        counts = request(address, "GET", "/calls")[1]
    assert counts["answers"] == {"201": 1, "409": 1}
    assert counts["keys"]["k"] == {
        "calls": 2,
        "effects": 1,
        "replays": 0,
        "receipt": "receipt-000001",
        "account": "only",
        "occurrence": "charge:2026-08-25T02:00Z",
    }


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{}", {}, 400),
        (b"{}", {"Idempotency-Key": "k"}, 422),
        (b'{"account": 1, "occurrence": "x"}', {"Idempotency-Key": "k"}, 422),
        (b"[]", {"Idempotency-Key": "k"}, 400),
        (b"{", {"Idempotency-Key": "k"}, 400),
        (b"\xff", {"Idempotency-Key": "k"}, 400),
        (b"[" * 60_000, {"Idempotency-Key": "k"}, 400),
        (b" " * 70_000, {"Idempotency-Key": "k"}, 413),
    ],
)
def test_what_is_no_charge_is_refused(body: bytes, headers: dict[str, str], status: int) -> None:
    with running_payments(Provider()) as address:
        assert request(address, "POST", "/charges", body, headers)[0] == status
        assert request(address, "GET", "/calls")[1]["effects"] == 0


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"account": "a", "no": 1}',
        b'{"account": "a", "status": 200}',
        b'{"account": "a", "delay_seconds": "x"}',
        b'{"account": "a", "times": -1}',
    ],
)
def test_a_behaviour_that_makes_no_sense_is_refused(body: bytes) -> None:
    with running_payments(Provider()) as address:
        assert request(address, "POST", "/behaviour", body)[0] == 422


def test_an_unknown_path_is_refused() -> None:
    with running_payments(Provider()) as address:
        assert request(address, "GET", "/")[0] == 404
        assert request(address, "POST", "/else", b"{}")[0] == 404


def test_a_refusal_gives_up(provider: Provider) -> None:
    provider.behave("only", Behaviour(status=402))
    with pytest.raises(GiveUp, match="refused, 402"):
        charge(outside_call("only"))
    assert provider.counts()["effects"] == 0


@pytest.mark.parametrize(("status", "retry_after", "wait"), [(429, 7, 7), (503, 120, 120), (503, 0, 30)])
def test_a_busy_provider_says_when_to_come_again(provider: Provider, status: int, retry_after: int, wait: int) -> None:
    provider.behave(EVERY_ACCOUNT, Behaviour(status=status, retry_after=retry_after, times=1))
    with pytest.raises(RetryLater) as caught:
        charge(outside_call("only"))
    assert caught.value.after == timedelta(seconds=wait)
    assert charge(outside_call("only")) == {"receipt": "receipt-000001"}


def test_any_other_answer_is_an_ordinary_failure(provider: Provider) -> None:
    provider.behave("only", Behaviour(status=500))
    with pytest.raises(PaymentsFailed, match="500"):
        charge(outside_call("only"))


def test_a_charge_whose_answer_was_lost_is_found_again_by_its_key(provider: Provider) -> None:
    provider.behave("only", Behaviour(status=503, after_effect=True, times=1))
    with pytest.raises(RetryLater):
        charge(outside_call("only"))
    assert provider.counts()["effects"] == 1
    assert charge(outside_call("only")) == {"receipt": "receipt-000001"}
    assert provider.counts()["effects"] == 1


def test_a_silent_provider_times_out_and_the_next_try_finds_out(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charges, "TIMEOUT_SECONDS", 0.2)
    provider.behave("only", Behaviour(hold=True, after_effect=True))
    with pytest.raises(TimeoutError):
        charge(outside_call("only"))
    provider.behave("only", Behaviour())
    monkeypatch.setattr(charges, "TIMEOUT_SECONDS", 10.0)
    assert charge(outside_call("only")) == {"receipt": "receipt-000001"}


def test_a_held_call_goes_on_when_it_is_told_to(provider: Provider) -> None:
    provider.behave("only", Behaviour(hold=True))
    with ThreadPoolExecutor(1) as threads:
        held = threads.submit(charge, outside_call("only"))
        assert provider.wait_for_held(1, 10)
        assert charge(outside_call("another")) == {"receipt": "receipt-000001"}
        assert provider.counts()["effects"] == 1
        provider.behave("only", Behaviour())
        assert held.result(10) == {"receipt": "receipt-000002"}


def test_a_provider_that_is_not_there_is_an_os_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with running_payments(Provider()) as address:
        monkeypatch.setenv("MATINS_EXAMPLE_PAYMENTS_URL", address)
    with pytest.raises(ConnectionRefusedError):
        charge(outside_call("only"))


def test_the_hostile_id_arrives_as_it_is(provider: Provider) -> None:
    charge(outside_call(HOSTILE_ID))
    keys = provider.counts()["keys"]
    assert isinstance(keys, dict)
    assert [one["account"] for one in keys.values()] == [HOSTILE_ID]


def test_the_process_prints_its_address_and_ends_cleanly() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "examples.billing.payments", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert request(address, "GET", "/calls")[1]["calls"] == 0
        assert request(address, "POST", "/behaviour", b'{"account": "*", "hold": true}')[0] == 200
        unanswered = http.client.HTTPConnection(urlsplit(address).netloc)
        unanswered.request("POST", "/charges", b'{"account": "a", "occurrence": "o"}', {"Idempotency-Key": "k"})
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=20)
        unanswered.close()
    assert (process.returncode, output, errors) == (0, "", "")
