"""Charging an account through a payment provider: an effect outside the database.

The provider holds each account's subscription and works out the amount; the call says whom to charge, for which
occurrence, and under which idempotency key. The same key always comes with the same body, so a repeated call is
answered with the first one's receipt. A plain function: it runs in a thread and may block.
"""

import http.client
import json
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from examples.billing.settings import payments_url
from shared.job import GiveUp, OutsideCall, RetryLater

TIMEOUT_SECONDS = 10.0
LARGEST_ANSWER = 64 * 1024
USUAL_WAIT = timedelta(seconds=30)
LONGEST_WAIT = timedelta(hours=1)
CREATED = frozenset({200, 201})
NEVER = frozenset({402, 409, 422})
LATER = frozenset({429, 503})


class PaymentsFailed(Exception):
    """The provider's answer says neither yes, no, nor later: the account is tried again as after any failure."""


def charge(call: OutsideCall) -> dict[str, str]:
    """Charge one account and give the provider's receipt.

    Raises GiveUp for a refusal (402, 409, 422), RetryLater for 429 and 503, by `Retry-After`, and PaymentsFailed for
    any other answer. A broken connection or a timeout raises OSError or HTTPException: whether it was charged is
    unknown, and the next try's key finds out.
    """
    status, headers, answer = _post(call.key, {"account": call.account, "occurrence": str(call.occurrence)})
    if status in CREATED and "receipt" in answer:
        return {"receipt": str(answer["receipt"])}
    reason = f"{status}: {str(answer.get('error', 'no reason given'))[:200]}"
    if status in NEVER:
        raise GiveUp(f"the payment provider refused, {reason}")
    if status in LATER:
        raise RetryLater(f"the payment provider is busy, {reason}", after=retry_after(headers))
    raise PaymentsFailed(f"the payment provider answered {reason}")


def retry_after(headers: http.client.HTTPMessage) -> timedelta:
    """Read `Retry-After`, in seconds or as a date by the server's own clock: 30 s if unreadable, 1 h at most."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdecimal():
        return min(timedelta(seconds=int(text[:9])), LONGEST_WAIT)
    try:
        wait = parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("Date", ""))
    except (TypeError, ValueError):
        return USUAL_WAIT
    return min(max(wait, timedelta()), LONGEST_WAIT)


def _post(key: str, body: dict[str, str]) -> tuple[int, http.client.HTTPMessage, dict[str, Any]]:
    address = payments_url()
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.hostname or "", address.port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request(
            "POST",
            address.path.rstrip("/") + "/charges",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Idempotency-Key": key},
        )
        response = connection.getresponse()
        return response.status, response.headers, _object(response.read(LARGEST_ANSWER))
    finally:
        connection.close()


def _object(text: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
