"""The example's declaration is one that the product takes."""

from datetime import UTC, datetime, timedelta
from http.client import HTTPMessage

import pytest

from examples.billing import settings
from examples.billing.charges import retry_after
from examples.billing.jobs import jobs
from shared.job import Outside, PerAccount, SetBased

DATE = "Tue, 25 Aug 2026 02:00:00 GMT"


def test_each_mode_is_shown_once_and_faultless() -> None:
    assert [(job.name, type(job.handler)) for job in jobs] == [
        ("invoice-run", PerAccount),
        ("usage-rollup", SetBased),
        ("charge", Outside),
    ]
    assert [job.faults for job in jobs] == [()] * 3


def test_the_night_comes_at_two() -> None:
    evening = datetime(2026, 8, 24, 18, tzinfo=UTC)
    assert {job.schedule.next_after(evening) for job in jobs} == {datetime(2026, 8, 25, 2, tzinfo=UTC)}


def test_the_schedule_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATINS_EXAMPLE_SCHEDULE", "37 14 * * *")
    assert settings.schedule() == "37 14 * * *"


@pytest.mark.parametrize("address", ["", "127.0.0.1:80", "ftp://payments", "http://"])
def test_an_unusable_payments_address_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("MATINS_EXAMPLE_PAYMENTS_URL", address)
    with pytest.raises(settings.NoPaymentsUrl):
        settings.payments_url()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7),
        ("0", 0),
        (" 12 ", 12),
        ("99999999999999", 3600),
        ("Tue, 25 Aug 2026 02:00:45 GMT", 45),
        ("Tue, 25 Aug 2026 01:00:00 GMT", 0),
        ("Wed, 26 Aug 2026 02:00:00 GMT", 3600),
        ("soon", 30),
        ("-1", 30),
        ("٣", 30),
        ("", 30),
    ],
)
def test_retry_after_is_read_in_both_forms_and_bounded(text: str, seconds: int) -> None:
    headers = HTTPMessage()
    headers["Date"] = DATE
    headers["Retry-After"] = text
    assert retry_after(headers) == timedelta(seconds=seconds)


def test_a_date_without_the_servers_own_clock_gives_the_usual_wait() -> None:
    headers = HTTPMessage()
    headers["Retry-After"] = DATE
    assert retry_after(headers) == timedelta(seconds=30)
