"""The channels of alerts as their setting describes them: every fault at once, no secret said."""

from pathlib import Path

import pytest

from shared.channels import LOG, Alertmanager, Email, PagerDuty, Slack, Webhook, read_channels
from shared.masking import mask
from shared.settings import FaultySettings, load_settings
from tests.support.outside import new_key

KEY = new_key()
ALL = f"""
[channels.everything]
kind = "log"
[channels.own]
kind = "webhook"
url = "http://alerts.internal:8080/matins?team=night"
keys = ["{KEY}"]
severities = ["critical"]
[channels.prometheus]
kind = "alertmanager"
url = "http://alertmanager:9093/"
token = "a-bearer-token-of-ours"
[channels.on-call]
kind = "pagerduty"
routing_key = "R0123456789ABCDEF0123456789ABCDE"
kinds = ["missed", "failed"]
give_up_after_hours = 2
[channels.team]
kind = "slack"
url = "https://hooks.slack.com/services/T000/B000/hQ3vZk8TnW5rLp2C"
jobs = ["invoice-run"]
[channels.mail]
kind = "email"
host = "smtp.example.com"
from = "matins@example.com"
to = ["night@example.com", "day@example.com"]
username = "matins"
password = "a-long-password"
[channels.dead-man]
kind = "ping"
url = "https://hc-ping.com/11111111-2222-3333-4444-555555555555"
[channels.invoices]
kind = "ping"
url = "https://hc-ping.com/99999999-2222-3333-4444-555555555555"
job = "invoice-run"
"""
SECRETS = (
    KEY,
    "a-bearer-token-of-ours",
    "R0123456789ABCDEF0123456789ABCDE",
    "hQ3vZk8TnW5rLp2C",
    "a-long-password",
    "11111111-2222-3333-4444-555555555555",
)


def faults_of(text: str) -> list[str]:
    with pytest.raises(ValueError, match="TOML") as refused:
        read_channels(text)
    return [line.strip() for line in str(refused.value).splitlines()[1:]]


def test_every_kind_of_channel_is_read() -> None:
    channels = {one.name: one for one in read_channels(ALL)}
    kinds = ["log", "webhook", "alertmanager", "pagerduty", "slack", "email", "ping", "ping"]
    assert [one.kind for one in channels.values()] == kinds
    targets = {name: one.target for name, one in channels.items()}
    assert isinstance(targets["own"], Webhook)
    assert isinstance(targets["prometheus"], Alertmanager)
    assert targets["prometheus"].url == "http://alertmanager:9093"
    assert isinstance(targets["on-call"], PagerDuty)
    assert isinstance(targets["team"], Slack)
    assert isinstance(targets["mail"], Email)
    assert targets["mail"].port == 587
    assert channels["own"].unwanted == {
        "partial",
        "duration_near_interval",
        "lag_growing",
        "config_mismatch",
        "clock_skew",
    }
    assert channels["on-call"].give_up_after.total_seconds() == 7200


def test_without_channels_there_is_the_log_and_with_pings_alone_too() -> None:
    assert read_channels(" \n") == (LOG,)
    ping = 'kind = "ping"\nurl = "https://hc-ping.com/uuid"\n'
    assert [one.name for one in read_channels(f"[channels.dead-man]\n{ping}")] == ["dead-man", "log"]
    (fault,) = faults_of(f"[channels.log]\n{ping}")
    assert "only pings" in fault
    (fault,) = faults_of(f'[channels.job]\n{ping}jobs = ["a"]')
    assert "job = 'NAME'" in fault


@pytest.mark.parametrize("secret", SECRETS, ids=range(len(SECRETS)))
def test_no_secret_is_said(secret: str) -> None:
    channels = read_channels(ALL)
    assert secret not in repr(channels)
    assert secret not in mask(f"what failed was {secret}, again")


def test_every_fault_is_told_at_once_and_none_of_its_values() -> None:
    found = faults_of(
        """
        top = 1
        [channels.Loud]
        kind = "log"
        [channels.own]
        kind = "webhook"
        url = "ftp://user:secret-one@example.com"
        keys = ["whsec_secret-two"]
        [channels.team]
        kind = "slack"
        url = "http://hooks.example.com/secret-three"
        colour = "red"
        [channels.mail]
        kind = "email"
        host = "a b"
        from = "no address"
        password = "secret-four"
        security = "none"
        [channels.other]
        kind = "pigeon"
        severities = ["loud"]
        [channels.nothing]
        """
    )
    assert not any("secret-" in line for line in found)
    places = [line.partition(": ")[0] + ": " + line.partition(": ")[2].split(":")[0].split(" is ")[0] for line in found]
    assert places == [
        "'top': there",
        "channels.Loud: a channel's name",
        "channels.own: url",
        "channels.own: keys",
        "channels.team: url",
        "channels.team: 'colour'",
        "channels.mail: host",
        "channels.mail: from",
        "channels.mail: to",
        "channels.mail: username and password belong together",
        "channels.mail: a password with security = 'none' would be sent for all to read",
        "channels.other: kind",
        "channels.other: severities",
        "channels.nothing: kind",
    ]


def test_what_is_not_toml_is_refused_without_a_quotation() -> None:
    with pytest.raises(ValueError, match="not TOML") as refused:
        read_channels('[channels.a]\nkind = "slack" url = "https://secret.example.com"')
    assert "secret" not in str(refused.value)


def test_the_setting_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "channels.toml").write_text(ALL, encoding="utf-8")
    settings = load_settings({"MATINS_CHANNELS_FILE": str(tmp_path / "channels.toml")}, need=frozenset())
    assert settings.secret("channels").strip() == ALL.strip()
    assert "Webhook" not in repr(settings)
    with pytest.raises(FaultySettings, match="MATINS_CHANNELS: valid is TOML"):
        load_settings({"MATINS_CHANNELS": "[channels]"}, need=frozenset())
