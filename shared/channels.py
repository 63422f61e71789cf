"""Whom alerts are told, and how: channels read from TOML, every fault at once. Pure.

A channel may choose severities, kinds of alert and jobs; without a choice it is told everything. Where no channel is
declared there is one, `log`: an alert never goes nowhere.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias, get_args

from schemas.alert import KINDS, Severity
from shared.api_callers import Key
from shared.channel_values import address, encrypted_address, files, keys, names, secret, text, truth, whole
from shared.masking import know_secret
from shared.table_reading import TableReading

MOST_CHANNELS = 30
MOST_HOURS = 168
FORM = "TOML with a table for each channel, as [channels.NAME] with kind = 'slack' and url = '...'"
PAGERDUTY: Final = "https://events.pagerduty.com/v2/enqueue"
Security = Literal["starttls", "tls", "none"]

_NAME = re.compile(r"[a-z][a-z0-9._-]{0,62}", re.ASCII)
_JOB = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)
_MAILBOX = re.compile(r"[^\s@<>,;:\"\\()\[\]]{1,64}@[A-Za-z0-9.-]{1,253}")
_HOST = re.compile(r"[A-Za-z0-9.:-]{1,253}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Log:
    """The log of the process that delivers."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """An HTTP receiver; each message is signed with every key by the Standard Webhooks.

    With `audit` it is told the head of the audit trail too.
    """

    url: str = field(repr=False)
    keys: tuple[Key, ...]
    ca_file: str = ""
    audit: bool = False


@dataclass(frozen=True, slots=True)
class Alertmanager:
    """One Alertmanager, by its root; of a cluster each is a channel of its own."""

    url: str = field(repr=False)
    token: str = field(repr=False, default="")
    ca_file: str = ""


@dataclass(frozen=True, slots=True)
class PagerDuty:
    """A service of PagerDuty, by the key of its integration with Events API v2."""

    routing_key: str = field(repr=False)
    url: str = PAGERDUTY
    ca_file: str = ""


@dataclass(frozen=True, slots=True)
class Slack:
    """An incoming webhook of Slack, or of what takes the same."""

    url: str = field(repr=False)
    ca_file: str = ""


@dataclass(frozen=True, slots=True)
class Email:
    """A mail server, and who is written to. Without `security` neither text nor password is hidden from anybody."""

    host: str
    port: int
    sender: str
    to: tuple[str, ...]
    security: Security = "starttls"
    username: str = ""
    password: str = field(repr=False, default="")
    ca_file: str = ""


@dataclass(frozen=True, slots=True)
class Ping:
    """A dead man's switch outside, as Healthchecks has it: of the watch itself, or of a job's runs."""

    url: str = field(repr=False)
    job: str = ""
    ca_file: str = ""


Target: TypeAlias = Log | Webhook | Alertmanager | PagerDuty | Slack | Email | Ping


@dataclass(frozen=True, slots=True)
class Channel:
    """Where alerts go, and which: empty choices choose all. What cannot be delivered in `give_up_after` is given up."""

    name: str
    target: Target
    severities: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    jobs: frozenset[str] = frozenset()
    give_up_after: timedelta = timedelta(hours=24)

    @property
    def kind(self) -> str:
        """The word of the declaration: log, webhook, alertmanager, pagerduty, slack, email or ping."""
        return type(self.target).__name__.lower()

    @property
    def unwanted(self) -> frozenset[str]:
        """The kinds of alert whose severity was not chosen; one that this release doesn't know is always told."""
        if not self.severities:
            return frozenset()
        return frozenset(name for name, kind in KINDS.items() if kind.severity not in self.severities)


LOG: Final = Channel("log", Log())


def read_channels(text_: str) -> tuple[Channel, ...]:
    """Read the channels; the log alone from an empty text. Raises ValueError that says what is valid and every fault.

    Their secrets are masked from then on, wherever they are said.
    """
    if not text_.strip():
        return (LOG,)
    try:
        tables = tomllib.loads(text_)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # What the parser says quotes nothing but the place.
        raise ValueError(f"{FORM}; it is not TOML: {error}") from None
    faults: list[str] = []
    described = tables.pop("channels", None)
    faults += [f"{name[:80]!r}: there is nothing but [channels.NAME] at the top" for name in tables]
    if not isinstance(described, dict) or not 1 <= len(described) <= MOST_CHANNELS:
        raise ValueError(f"{FORM}, from 1 to {MOST_CHANNELS} of them" + "".join(f"\n  {fault}" for fault in faults))
    channels = [_channel(name, table, faults) for name, table in described.items()]
    told = [one for one in channels if not isinstance(one.target, Ping)]
    if not told and LOG.name in described:
        faults.append("channels.log: where only pings are declared, this is the name of the log's own channel")
    if faults:
        raise ValueError(FORM + "".join(f"\n  {fault}" for fault in faults))
    return tuple(channels if told else [*channels, LOG])


def _channel(name: str, table: Any, faults: list[str]) -> Channel:
    reading = TableReading(f"channels.{name[:80]}", table, faults)
    if not _NAME.fullmatch(name):
        reading.fault("a channel's name is small letters, digits and . _ -, at most 63")
    kind = reading.take("kind", names(_TARGETS, one=True), f"one of {', '.join(_TARGETS)}", "")
    chosen = _choices(reading)
    target: Target = Log()
    if kind == "ping" and reading.given & {"severities", "kinds", "jobs"}:
        reading.fault("a ping has no severities, kinds or jobs; with job = 'NAME' it is of that job's runs")
    if kind:
        target = _TARGETS[kind](reading)
        reading.refuse_others(f"kind, severities, kinds, jobs, give_up_after_hours, and of {kind} {_OPTIONS[kind]}")
    elif "kind" not in reading.given:
        reading.fault(f"kind is missing: one of {', '.join(_TARGETS)}")
    return Channel(name, target, **chosen)


def _choices(reading: TableReading) -> dict[str, Any]:
    severities, none = get_args(Severity), frozenset[str]()
    hours = reading.take("give_up_after_hours", whole(1, MOST_HOURS), f"whole hours, 1 to {MOST_HOURS}", 24)
    jobs = reading.take("jobs", names(_JOB), "a list of names of jobs", none)
    return {
        "severities": reading.take("severities", names(severities), f"a list of {' and '.join(severities)}", none),
        "kinds": reading.take("kinds", names(KINDS), f"a list of {', '.join(KINDS)}", none),
        "jobs": jobs,
        "give_up_after": timedelta(hours=hours),
    }


def _required(reading: TableReading, *wanted: str) -> None:
    for name in wanted:
        if name not in reading.given:
            reading.fault(f"{name} is missing")


def _ca_file(reading: TableReading) -> str:
    return str(reading.take("ca_file", files, "a file of certificates that can be read", ""))


def _log(_: TableReading) -> Log:
    return Log()


def _webhook(reading: TableReading) -> Webhook:
    url = reading.take("url", address, "an address, https:// or http://, without a user", "")
    signing = reading.take("keys", keys, "a list of 1 to 4 keys, each whsec_ and base64", ())
    _required(reading, "url", "keys")
    return Webhook(url, signing, _ca_file(reading), reading.take("audit", truth, "true or false", False))  # noqa: FBT003 - a default


def _alertmanager(reading: TableReading) -> Alertmanager:
    url = reading.take("url", address, "the address of its root, as http://alertmanager:9093, without a user", "")
    token = reading.take("token", secret, "a text without spaces", "")
    _required(reading, "url")
    return Alertmanager(url.rstrip("/"), token, _ca_file(reading))


def _pagerduty(reading: TableReading) -> PagerDuty:
    valid = "an https:// address (http:// on the loopback interface alone)"
    key = reading.take("routing_key", secret, "the key of the integration, a text without spaces", "")
    url = reading.take("url", encrypted_address, valid, PAGERDUTY)
    _required(reading, "routing_key")
    return PagerDuty(key, url, _ca_file(reading))


def _slack(reading: TableReading) -> Slack:
    valid = "an https:// address (http:// on the loopback interface alone)"
    url = reading.take("url", encrypted_address, valid, "")
    _required(reading, "url")
    if url:
        # Whoever knows the address may write to the channel.
        know_secret(url)
        know_secret(url.rpartition("/")[2])
    return Slack(url, _ca_file(reading))


def _email(reading: TableReading) -> Email:
    security = reading.take("security", names(get_args(Security), one=True), "starttls, tls or none", "starttls")
    mailbox = "a list of 1 to 20 addresses, as night@example.com"
    mail = Email(
        host=reading.take("host", text(_HOST), "the name of the mail server", ""),
        port=reading.take(
            "port", whole(1, 65_535), "a port, 1 to 65535", {"starttls": 587, "tls": 465}.get(security, 25)
        ),
        sender=reading.take("from", text(_MAILBOX), "an address, as matins@example.com", ""),
        to=tuple(sorted(reading.take("to", names(_MAILBOX, most=20), mailbox, frozenset()))),
        security=security,
        username=reading.take("username", text(re.compile(r"[!-~]{1,200}")), "a name without spaces", ""),
        password=reading.take("password", secret, "a text without spaces", ""),
        ca_file=_ca_file(reading),
    )
    _required(reading, "host", "from", "to")
    if bool(mail.username) != bool(mail.password):
        reading.fault("username and password belong together")
    if mail.password and security == "none":
        reading.fault("a password with security = 'none' would be sent for all to read")
    return mail


def _ping(reading: TableReading) -> Ping:
    url = reading.take("url", encrypted_address, "an https:// address (http:// on the loopback interface alone)", "")
    job = reading.take("job", names(_JOB, one=True), "a job's name", "")
    _required(reading, "url")
    if url:
        # Whoever knows the address may say that all is well.
        know_secret(url)
        know_secret(url.rstrip("/").rpartition("/")[2])
    return Ping(url, job, _ca_file(reading))


_TARGETS: Final[Mapping[str, Any]] = {
    "log": _log,
    "webhook": _webhook,
    "alertmanager": _alertmanager,
    "pagerduty": _pagerduty,
    "slack": _slack,
    "email": _email,
    "ping": _ping,
}
_OPTIONS: Final = {
    "log": "none",
    "webhook": "url, keys, ca_file and audit",
    "alertmanager": "url, token and ca_file",
    "pagerduty": "routing_key, url and ca_file",
    "slack": "url and ca_file",
    "email": "host, port, security, from, to, username, password and ca_file",
    "ping": "url, job and ca_file",
}
