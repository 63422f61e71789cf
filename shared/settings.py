"""Every setting of the two processes, read once from the environment; a fault stops the start with exit code 2.

The names, defaults and meanings below are also the README's table, compared by a test. A secret may lie in a file
instead (`MATINS_…_FILE`), which is read anew at each connect, so that a rotated password needs no restart.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

from shared import setting_values
from shared.errors import MatinsError
from shared.masking import know_secrets_in, know_secrets_of
from shared.role_names import RoleNames, role_names
from shared.setting_names import LOGIN, PREFIX, unknown_names
from shared.setting_pairs import faults_together

Layout = Literal["auto", "json", "text"]


class FaultySettings(MatinsError):
    """Settings are missing or invalid; every fault is listed, a line each."""


def _setting(
    read: Callable[[str], Any], default: str | None, meaning: str, *, secret: bool = False, address: bool = True
) -> Any:
    metadata = {"read": read, "default": default, "meaning": meaning, "secret": secret, "address": address}
    return field(metadata=metadata, repr=not secret)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings, checked. Secrets are got through `secret`, since they may change while the process lives."""

    environment: str = _setting(
        setting_values.matching(r"[a-z][a-z0-9-]{0,30}", "small letters, digits and -, as production"),
        None,
        "The environment's name, kept in the database and the broker: a process with another name refuses to start.",
    )
    jobs: tuple[str, ...] = _setting(
        setting_values.modules, None, "The modules that declare `jobs`, with commas between."
    )
    database_url: str = _setting(
        setting_values.postgres_url, None, "PostgreSQL; over TLS with `sslmode` and `sslrootcert`.", secret=True
    )
    broker_url: str = _setting(
        setting_values.broker_url, None, "RabbitMQ; over TLS with `amqps://` and `cafile`.", secret=True
    )
    management_url: str = _setting(
        setting_values.http_url, "", "RabbitMQ's management API, for `doctor` and the console.", secret=True
    )
    prefix: str = _setting(
        setting_values.matching(r"[a-z][a-z0-9-]{0,30}", "small letters, digits and -"),
        "matins",
        "What the broker's names begin with; two environments may share a broker.",
    )
    broker_users: Mapping[str, str] = _setting(
        setting_values.broker_users,
        "",
        "Other names of the broker's users `owner`, `trigger`, `worker` and `operator`, as `worker=acme_worker`; "
        "read by `rights` and `doctor`.",
    )
    region: str = _setting(
        setting_values.matching(r"[a-z0-9-]{0,30}", "small letters, digits and -"),
        "",
        "Where this process runs; recorded with each attempt.",
    )
    tick_interval: timedelta = _setting(
        setting_values.duration(0.05, 60), "1s", "How often a trigger looks for what is due."
    )
    claim_lease: timedelta = _setting(
        setting_values.duration(0.2, 600),
        "30s",
        "How long a claim, a publisher or a sweeper may be silent before another takes over.",
    )
    sweep_interval: timedelta = _setting(
        setting_values.duration(0.05, 600), "5s", "How often what the dead left is looked for."
    )
    watch_interval: timedelta = _setting(
        setting_values.duration(0.05, 600), "15s", "How often what should have happened is compared with what did."
    )
    alert_repeat: timedelta = _setting(
        setting_values.duration(1, 2_678_400),
        "4h",
        "How often an open alert that nobody has acknowledged is told again.",
    )
    resend_after: timedelta = _setting(
        setting_values.duration(0.2, 86400), "60s", "A published message is never held for lost before this."
    )
    in_flight: int = _setting(
        setting_values.whole(1, 1_000_000), "5000", "Accounts of a job that may be published and not yet done."
    )
    prefetch: int = _setting(
        setting_values.whole(1, 1000), "16", "Messages that a worker holds of one queue, beside those that it runs."
    )
    outside_lease: timedelta = _setting(
        setting_values.duration(0.2, 600),
        "30s",
        "How long an outside call's worker may be silent before the account is given to another.",
    )
    max_crashes: int = _setting(setting_values.whole(1, 100), "3", "Workers that an account may end before it is dead.")
    delivery_limit: int = _setting(
        setting_values.whole(3, 1000),
        "20",
        "Deliveries of one message before the broker gives it up; read by `migrate`.",
    )
    delays: tuple[int, ...] = _setting(
        setting_values.delays, "1,5,30,120,600,3600", "Seconds of the delay queues; read by `migrate`."
    )
    pool_size: int = _setting(setting_values.whole(4, 1000), "12", "Database connections of one process.")
    statement_cache_size: int = _setting(
        setting_values.whole(0, 10_000), "200", "0 behind pgbouncer in transaction mode."
    )
    database_roles: RoleNames = _setting(
        role_names,
        "",
        "Database roles that have another name on this cluster: `matins_worker=prod_worker,job_invoice=prod_invoice`.",
    )
    database_timeout: timedelta = _setting(
        setting_values.duration(0.2, 600),
        "30s",
        "The longest that a statement of our own, or a wait for a connection, may take.",
    )
    broker_timeout: timedelta = _setting(
        setting_values.duration(0.2, 600), "10s", "The longest that a publish or a connect may take."
    )
    broker_heartbeat: timedelta = _setting(setting_values.duration(1, 600), "20s", "The broker connections' heartbeat.")
    grace_period: timedelta = _setting(
        setting_values.duration(0.2, 3600), "25s", "What a process has left to finish in after SIGTERM."
    )
    health_address: tuple[str, int] = _setting(
        setting_values.address, "127.0.0.1:0", "Where /livez and /readyz answer; port 0 takes a free one."
    )
    api_callers: str = _setting(
        setting_values.callers,
        "",
        "Who may call a trigger's endpoint for outside schedulers and check-ins, in TOML; without it there is no "
        "endpoint.",
        secret=True,
        address=False,
    )
    api_address: tuple[str, int] = _setting(
        setting_values.address, "127.0.0.1:8081", "Where that endpoint answers; port 0 takes a free one."
    )
    console_address: tuple[str, int] = _setting(
        setting_values.console_address,
        "off",
        "Where a trigger's console answers, as 127.0.0.1:8082; port 0 takes a free one; `off`: nowhere.",
    )
    console_access: str = _setting(
        setting_values.console_access,
        "",
        "Who may look at the console and who may act there, in TOML; without it it only shows, on the loopback "
        "interface.",
        secret=True,
        address=False,
    )
    trace_url: str = _setting(
        setting_values.trace_url,
        "",
        "Where a trace is to be seen, as `http://localhost:16686/trace/{trace_id}`: the console links there.",
    )
    channels: str = _setting(
        setting_values.channels,
        "",
        "Whom alerts are told, and how, in TOML; without it they are told to the log.",
        secret=True,
        address=False,
    )
    log_level: str = _setting(
        setting_values.matching(r"debug|info|warning|error", "debug | info | warning | error"),
        "info",
        "The least that is logged.",
    )
    log_format: str = _setting(
        setting_values.matching(r"auto|json|text", "auto | json | text"),
        "auto",
        "auto: text on a terminal, JSON elsewhere.",
    )
    success_sampling: float = _setting(
        setting_values.share, "0.01", "The share of successful executions that is traced; failures always are."
    )
    sources: Mapping[str, str] = field(repr=False)

    @property
    def log_layout(self) -> Layout:
        """How log lines are written."""
        return cast("Layout", self.log_format)

    @property
    def otel(self) -> dict[str, str]:
        """The standard variables of OpenTelemetry, which are not ours to check."""
        return {name: value for name, value in self.sources.items() if name.startswith("OTEL_")}

    def secret(self, name: str) -> str:
        """Give a secret as it is now: from its file if it lies in one, else from the environment.

        Raises FaultySettings when the file cannot be read or its content is not valid.
        """
        value, problem = _read(_field(name), self.sources)
        if problem:
            raise FaultySettings(problem)
        return str(value)

    def login_url(self, login: str) -> str:
        """Give the database address of a job's own login, in the same way. Raises FaultySettings."""
        value, problem = _read(_login_field(login), self.sources)
        if problem:
            raise FaultySettings(problem)
        return str(value)


def _field(name: str) -> Any:
    return next(one for one in fields(Settings) if one.name == name)


def _login_field(login: str) -> Any:
    """Describe the setting of a login's address as that of the database's."""
    meaning = f"the database's address for login {login!r}, which a job's handler names"
    metadata = {**_field("database_url").metadata, "meaning": meaning}
    return SimpleNamespace(name=f"login_url_{login}", metadata=metadata)


def _read(one: Any, sources: Mapping[str, str]) -> tuple[Any, str]:
    """Give the value, and '' or what is wrong with it."""
    variable = PREFIX + one.name.upper()
    file = sources.get(variable + "_FILE", "") if one.metadata["secret"] else ""
    if not file:
        return _checked(one, sources.get(variable) or one.metadata["default"], "")
    if sources.get(variable):
        return None, f"{variable} and {variable}_FILE are both set: keep one of them"
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        return None, f"{variable}_FILE: {file} cannot be read: {type(error).__name__}"
    return _checked(one, text, f" in {file}")


def _checked(one: Any, text: str | None, where: str) -> tuple[Any, str]:
    variable = PREFIX + one.name.upper()
    if text is None:
        either = f" (or {variable}_FILE)" if one.metadata["secret"] else ""
        return None, f"{variable}{either} is not set: {one.metadata['meaning']}"
    if one.metadata["secret"] and one.metadata["address"]:
        know_secrets_of(text)
    try:
        return one.metadata["read"](text), ""
    except ValueError as error:
        shown = where if one.metadata["secret"] else f" is {text[:80]!r}"
        return None, f"{variable}{shown}: valid is {error}"


def _known_names() -> set[str]:
    known = {PREFIX + one.name.upper() for one in fields(Settings) if one.metadata}
    return known | {PREFIX + one.name.upper() + "_FILE" for one in fields(Settings) if one.metadata.get("secret")}


def load_settings(sources: Mapping[str, str] | None = None, *, need: frozenset[str] | None = None) -> Settings:
    """Read and check every setting, from the process's environment by default.

    `need` names the settings without a default that must be there (all, by default); the others may be left out by
    a command that doesn't use them, and are then empty. Raises FaultySettings with all faults at once.
    """
    environment = dict(os.environ if sources is None else sources)
    values: dict[str, Any] = {}
    problems = unknown_names(environment, _known_names())
    know_secrets_in(environment, LOGIN)
    for one in fields(Settings):
        if not one.metadata:
            continue
        value, problem = _read(one, environment)
        optional = need is not None and one.metadata["default"] is None and one.name not in need
        left_out = not environment.get(PREFIX + one.name.upper()) and "is not set" in problem
        if problem and not (optional and left_out):
            problems.append(problem)
        values[one.name] = value if value is not None else _empty(one.name)
    problems += faults_together(values, environment)
    if problems:
        raise FaultySettings("\n".join(problems))
    return Settings(**values, sources=environment)


def _empty(name: str) -> Any:
    return () if name == "jobs" else ""


def setting_rows() -> list[tuple[str, str, str]]:
    """Give each setting's variable, default ('' for none) and meaning: the README's table."""
    return [
        (PREFIX + one.name.upper(), one.metadata["default"] or "", one.metadata["meaning"])
        for one in fields(Settings)
        if one.metadata and one.default is MISSING
    ]
