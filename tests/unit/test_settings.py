from datetime import timedelta
from pathlib import Path

import pytest

from shared.masking import mask
from shared.settings import FaultySettings, load_settings, setting_rows

GOOD = {
    "MATINS_ENVIRONMENT": "test",
    "MATINS_JOBS": "billing.jobs, reports",
    "MATINS_DATABASE_URL": "postgresql://user:secret@localhost/db",
    "MATINS_BROKER_URL": "amqp://user:secret@localhost/",
    "PATH": "/usr/bin",
    "OTEL_SERVICE_NAME": "kept",
}


def test_defaults_and_types() -> None:
    settings = load_settings(GOOD)
    assert settings.jobs == ("billing.jobs", "reports")
    assert settings.claim_lease == timedelta(seconds=30)
    assert settings.delays == (1, 5, 30, 120, 600, 3600)
    assert settings.otel == {"OTEL_SERVICE_NAME": "kept"}


def test_the_broker_s_users_may_have_other_names() -> None:
    settings = load_settings(GOOD | {"MATINS_BROKER_USERS": "trigger=acme-trigger, worker=acme@worker"})
    named = {"owner": "owner", "trigger": "acme-trigger", "worker": "acme@worker", "operator": "operator"}
    assert settings.broker_users == named


@pytest.mark.parametrize(
    "faulty", ["trigger", "triger=t", "trigger=", "trigger=a b", "trigger=worker", "trigger=a,trigger=b", ","]
)
def test_names_of_the_broker_s_users_that_cannot_be_are_refused(faulty: str) -> None:
    with pytest.raises(FaultySettings, match=r"MATINS_BROKER_USERS is .* valid is other names for owner, trigger"):
        load_settings(GOOD | {"MATINS_BROKER_USERS": faulty})


def test_every_fault_is_told_at_once_with_its_valid_values() -> None:
    faulty = {
        "MATINS_ENVIRONMENT": "Production!",
        "MATINS_CLAIM_LEASE": "5",
        "MATINS_PREFETCH": "0",
        "MATINS_MAX_CRASHES": "-1",
        "MATINS_SUCCESS_SAMPLING": "true",
        "MATINS_DELAYS": "5,1",
        "MATINS_TICK_INTERVALL": "1s",
        "MATINS_PLUGINS": "x",
        "TRIGER_MATINS": "1",
        "MATIN_PREFETCH": "8",
        "MATINS_DATABASE_URL": "mysql://user:secret@host/db",
        "MATINS_HEALTH_ADDRESS": "8080",
    }
    with pytest.raises(FaultySettings) as caught:
        load_settings(faulty)
    told = str(caught.value)
    for part in (
        "MATINS_ENVIRONMENT is 'Production!'",
        "MATINS_CLAIM_LEASE is '5': valid is a duration",
        "MATINS_PREFETCH is '0': valid is a whole number from 1",
        "MATINS_MAX_CRASHES is '-1'",
        "MATINS_SUCCESS_SAMPLING is 'true'",
        "MATINS_DELAYS is '5,1'",
        "MATINS_TICK_INTERVALL is not a setting; did you mean MATINS_TICK_INTERVAL?",
        "MATINS_PLUGINS is not a setting; the README lists every MATINS_… variable",
        "MATIN_PREFETCH is not a setting; did you mean MATINS_PREFETCH?",
        "MATINS_JOBS is not set",
        "MATINS_BROKER_URL (or MATINS_BROKER_URL_FILE) is not set",
        "MATINS_HEALTH_ADDRESS is '8080': valid is HOST:PORT",
    ):
        assert part in told
    assert "secret" not in told


def test_what_a_command_does_not_need_may_be_left_out_and_must_still_be_valid() -> None:
    settings = load_settings({"MATINS_JOBS": "reports"}, need=frozenset({"jobs"}))
    assert (settings.jobs, settings.environment) == (("reports",), "")
    with pytest.raises(FaultySettings, match="MATINS_ENVIRONMENT"):
        load_settings({"MATINS_JOBS": "reports", "MATINS_ENVIRONMENT": "X"}, need=frozenset({"jobs"}))


def test_a_secret_in_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("amqp://first@host/\n")
    sources = {name: value for name, value in GOOD.items() if name != "MATINS_BROKER_URL"}
    settings = load_settings(sources | {"MATINS_BROKER_URL_FILE": str(file)})
    assert settings.secret("broker_url") == "amqp://first@host/"
    file.write_text("amqp://second@host/")
    assert settings.secret("broker_url") == "amqp://second@host/"
    file.unlink()
    with pytest.raises(FaultySettings, match=f"MATINS_BROKER_URL_FILE: {file} cannot be read: FileNotFoundError"):
        settings.secret("broker_url")

    file.write_text("http://hidden@host/")
    with pytest.raises(FaultySettings, match=f"MATINS_BROKER_URL in {file}: valid is amqp") as caught:
        settings.secret("broker_url")
    assert "hidden" not in str(caught.value)
    with pytest.raises(FaultySettings, match="MATINS_BROKER_URL and MATINS_BROKER_URL_FILE are both set: keep one"):
        load_settings(GOOD | {"MATINS_BROKER_URL_FILE": str(file)})


def test_an_empty_variable_is_one_that_is_left_out() -> None:
    assert load_settings({"MATINS_JOBS": "", "MATINS_PREFIX": ""}, need=frozenset()).prefix == "matins"


def test_no_secret_is_shown() -> None:
    assert "secret" not in repr(load_settings(GOOD))


def test_every_setting_has_a_meaning() -> None:
    assert [variable for variable, _, meaning in setting_rows() if not meaning.endswith((".", "?"))] == []


@pytest.mark.parametrize(
    ("variable", "value", "valid"),
    [
        ("DATABASE_URL", "postgresql://u:hidden@h/d?sslmode=verify_full", "sslmode=disable | allow | prefer | require"),
        ("DATABASE_URL", "postgresql://u:hidden@h/d?sslmode=verify-full", "sslmode=verify-full with sslrootcert=FILE"),
        ("DATABASE_URL", "postgresql://u:hidden@h/d?sslrootcert=/a.pem", "sslrootcert with sslmode=verify-full"),
        ("DATABASE_URL", "postgresql://u:hidden@h/d?sslmode=prefer&sslrootcert=/a.pem", "which it has no effect"),
        ("DATABASE_URL", "postgresql://u:hidden@h/d?sslmode=verify-ca&sslrootcert=/a.pem", "/a.pem: no such file"),
        ("DATABASE_URL", "postgresql://u:hidden@h/d?sslcert=/a.pem", "read from /a.pem and /a.pem: no such file"),
        ("BROKER_URL", "amqps://u:hidden@h/?cafile=/a.pem", "no certificates can be read from /a.pem: no such file"),
        ("BROKER_URL", "amqps://u:hidden@h/?cafile=/dev/null", "read from /dev/null: no certificate or crl found"),
        ("BROKER_URL", "amqps://u:hidden@h/?certfile=/dev/null&keyfile=/a.key", "read from /dev/null and /a.key"),
        ("BROKER_URL", "amqps://u:hidden@h/?keyfile=/a.key", "a certfile beside the keyfile"),
        ("BROKER_URL", "amqps://u:hidden@h/?cacertfile=/a.pem", "nothing but cafile, certfile, keyfile after the '?'"),
        ("BROKER_URL", "amqps://u:hidden@h/?no_verify_ssl=1", "nothing but cafile, certfile, keyfile after the '?'"),
        ("BROKER_URL", "amqp://u:hidden@h/?cafile=/a.pem", "amqps://… where something follows a '?'"),
        ("DATABASE_URL", "postgresql://u:hid/hidden@h/d", "with / ? # @ : % in names and passwords written as %2F"),
        ("BROKER_URL", "amqp://u:12#hidden@h/d", "with / ? # @ : % in names and passwords written as %2F"),
        ("BROKER_URL", "amqp://u:12?hidden@h/d", "with / ? # @ : % in names and passwords written as %2F"),
        ("BROKER_URL", "amqp://u:hidden@h:port/d", "amqp://USER:PASSWORD@HOST:PORT/VHOST"),
        ("BROKER_URL", "amqp:///hidden", "amqp://USER:PASSWORD@HOST:PORT/VHOST"),
        ("MANAGEMENT_URL", "http://u:hidden@h?cafile=/a.pem", "https://… where something follows a '?'"),
    ],
)
def test_addresses_whose_encryption_would_not_be_what_they_seem_are_refused(
    variable: str, value: str, valid: str
) -> None:
    with pytest.raises(FaultySettings) as caught:
        load_settings(GOOD | {f"MATINS_{variable}": value})
    assert valid in str(caught.value)
    assert str(caught.value).startswith(f"MATINS_{variable}: valid is ")
    assert "hidden" not in str(caught.value)


def test_secrets_that_are_no_settings_are_known_as_well() -> None:
    others = {
        "MATINS_LOGIN_URL_INVOICE": "postgresql://invoice:of%2Dthe%2Djob%2D17@host/db",
        "PGPASSWORD": "of-the-driver-17",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20of-the-header-17,x-other=of-another-17",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://me:of-the-collector-17@host/v1/traces",
    }
    load_settings(GOOD | others)
    for secret in ("of-the-job-17", "of-the-driver-17", "of-the-header-17", "of-another-17", "of-the-collector-17"):
        assert mask(f"refused: {secret}") == "refused: ***"
