"""Every setting of the two processes, read once from the environment; a fault stops the start with exit code 2.

The names, defaults and meanings below are also the README's table, compared by a test. A secret may lie in a file
instead (`MATINS_…_FILE`), which is read anew at each connect, so that a rotated password needs no restart.
"""

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, cast

from shared.errors import MatinsError

PREFIX = "MATINS_"
HIGHEST_PORT = 65_535
Layout = Literal["auto", "json", "text"]
# Read by the demo, the tests and the image, not by the processes.
FOREIGN = re.compile(r"MATINS_(TEST|DEMO|EXAMPLE)_")

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class FaultySettings(MatinsError):
    """Settings are missing or invalid; every fault is listed, a line each."""


def _duration(lowest: float, highest: float) -> Callable[[str], timedelta]:
    valid = f"a duration from {lowest:g}s to {highest:g}s, as 500ms, 30s, 5m or 2h"

    def read(text: str) -> timedelta:
        match = _DURATION.fullmatch(text)
        value = float(match[1]) * _UNITS[match[2]] if match else None
        if value is None or not lowest <= value <= highest:
            raise ValueError(valid)
        return timedelta(seconds=value)

    return read


def _whole(lowest: int, highest: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or not lowest <= int(text) <= highest:
            raise ValueError(f"a whole number from {lowest} to {highest}")
        return int(text)

    return read


def _share(text: str) -> float:
    if not re.fullmatch(r"[01](\.\d{1,6})?", text, re.ASCII) or float(text) > 1:
        raise ValueError("a share from 0 to 1, as 0.01")
    return float(text)


def _matching(pattern: str, valid: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(valid)
        return text

    return read


def _modules(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", name, re.ASCII) for name in names):
        raise ValueError("module names, with commas between, as billing.jobs,reports.jobs")
    return names


def _delays(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(re.fullmatch(r"\d{1,6}", part, re.ASCII) for part in parts):
        raise ValueError("whole seconds in rising order, with commas between, as 1,5,30")
    delays = tuple(int(part) for part in parts)
    if delays[0] < 1 or list(delays) != sorted(set(delays)):
        raise ValueError("whole seconds in rising order, with commas between, as 1,5,30")
    return delays


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch(r"\d{1,5}", port, re.ASCII) or int(port) > HIGHEST_PORT:
        raise ValueError("HOST:PORT, as 0.0.0.0:8080")
    return host.strip("[]"), int(port)


def _setting(read: Callable[[str], Any], default: str | None, meaning: str, *, secret: bool = False) -> Any:
    metadata = {"read": read, "default": default, "meaning": meaning, "secret": secret}
    return field(metadata=metadata, repr=not secret)


_POSTGRES_URL = _matching(r"postgres(ql)?://\S+", "postgresql://USER:PASSWORD@HOST:PORT/DATABASE")
_BROKER_URL = _matching(r"amqps?://\S+", "amqp://USER:PASSWORD@HOST:PORT/VHOST (amqps:// for TLS)")
_HTTP_URL = _matching(r"(https?://\S+)?", "http://USER:PASSWORD@HOST:PORT")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings, checked. Secrets are got through `secret`, since they may change while the process lives."""

    environment: str = _setting(
        _matching(r"[a-z][a-z0-9-]{0,30}", "small letters, digits and -, as production"),
        None,
        "The environment's name, kept in the database and the broker: a process with another name refuses to start.",
    )
    jobs: tuple[str, ...] = _setting(_modules, None, "The modules that declare `jobs`, with commas between.")
    database_url: str = _setting(_POSTGRES_URL, None, "PostgreSQL.", secret=True)
    broker_url: str = _setting(_BROKER_URL, None, "RabbitMQ.", secret=True)
    management_url: str = _setting(
        _HTTP_URL, "", "RabbitMQ's management API, for `doctor`; it works without.", secret=True
    )
    prefix: str = _setting(
        _matching(r"[a-z][a-z0-9-]{0,30}", "small letters, digits and -"),
        "matins",
        "What the broker's names begin with; two environments may share a broker.",
    )
    region: str = _setting(
        _matching(r"[a-z0-9-]{0,30}", "small letters, digits and -"),
        "",
        "Where this process runs; recorded with each attempt.",
    )
    tick_interval: timedelta = _setting(_duration(0.05, 60), "1s", "How often a trigger looks for what is due.")
    claim_lease: timedelta = _setting(
        _duration(0.2, 600),
        "30s",
        "How long a claim, a publisher or a sweeper may be silent before another takes over.",
    )
    sweep_interval: timedelta = _setting(_duration(0.05, 600), "5s", "How often what the dead left is looked for.")
    resend_after: timedelta = _setting(
        _duration(0.2, 86400), "60s", "A published message is never held for lost before this."
    )
    in_flight: int = _setting(_whole(1, 1_000_000), "5000", "Accounts of a job that may be published and not yet done.")
    prefetch: int = _setting(
        _whole(1, 1000), "16", "Messages that a worker holds of one queue, beside those that it runs."
    )
    outside_lease: timedelta = _setting(
        _duration(0.2, 600),
        "30s",
        "How long an outside call's worker may be silent before the account is given to another.",
    )
    max_crashes: int = _setting(_whole(1, 100), "3", "Workers that an account may end before it is dead.")
    delivery_limit: int = _setting(
        _whole(3, 1000), "20", "Deliveries of one message before the broker gives it up; read by `migrate`."
    )
    delays: tuple[int, ...] = _setting(
        _delays, "1,5,30,120,600,3600", "Seconds of the delay queues; read by `migrate`."
    )
    pool_size: int = _setting(_whole(4, 1000), "12", "Database connections of one process.")
    statement_cache_size: int = _setting(_whole(0, 10_000), "200", "0 behind pgbouncer in transaction mode.")
    database_timeout: timedelta = _setting(
        _duration(0.2, 600), "30s", "The longest that a statement of our own, or a wait for a connection, may take."
    )
    broker_timeout: timedelta = _setting(
        _duration(0.2, 600), "10s", "The longest that a publish or a connect may take."
    )
    broker_heartbeat: timedelta = _setting(_duration(1, 600), "20s", "The broker connections' heartbeat.")
    grace_period: timedelta = _setting(
        _duration(0.2, 3600), "25s", "What a process has left to finish in after SIGTERM."
    )
    health_address: tuple[str, int] = _setting(
        _address, "127.0.0.1:0", "Where /livez and /readyz answer; port 0 takes a free one."
    )
    log_level: str = _setting(
        _matching(r"debug|info|warning|error", "debug | info | warning | error"), "info", "The least that is logged."
    )
    log_format: str = _setting(
        _matching(r"auto|json|text", "auto | json | text"), "auto", "auto: text on a terminal, JSON elsewhere."
    )
    success_sampling: float = _setting(
        _share, "0.01", "The share of successful executions that is traced; failures always are."
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


def _field(name: str) -> Any:
    return next(one for one in fields(Settings) if one.name == name)


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
    try:
        return one.metadata["read"](text), ""
    except ValueError as error:
        shown = where if one.metadata["secret"] else f" is {text[:80]!r}"
        return None, f"{variable}{shown}: valid is {error}"


def _unknown(sources: Mapping[str, str]) -> list[str]:
    known = {PREFIX + one.name.upper() for one in fields(Settings) if one.metadata}
    known |= {PREFIX + one.name.upper() + "_FILE" for one in fields(Settings) if one.metadata.get("secret")}
    problems = []
    for variable in sorted(sources):
        near_miss = difflib.get_close_matches(variable, known, 1, 0.85) if not variable.startswith(PREFIX) else []
        if near_miss and variable.partition("_")[0] != PREFIX.rstrip("_"):
            problems.append(f"{variable} is not a setting; did you mean {near_miss[0]}?")
        if variable.startswith(PREFIX) and variable not in known and not FOREIGN.match(variable):
            names = [name.removeprefix(PREFIX) for name in known]
            near = difflib.get_close_matches(variable.removeprefix(PREFIX), names, 1, 0.6)
            hint = f"did you mean {PREFIX}{near[0]}?" if near else f"the README lists every {PREFIX}… variable"
            problems.append(f"{variable} is not a setting; {hint}")
    return problems


def load_settings(sources: Mapping[str, str] | None = None, *, need: frozenset[str] | None = None) -> Settings:
    """Read and check every setting, from the process's environment by default.

    `need` names the settings without a default that must be there (all, by default); the others may be left out by
    a command that doesn't use them, and are then empty. Raises FaultySettings with all faults at once.
    """
    environment = dict(os.environ if sources is None else sources)
    values: dict[str, Any] = {}
    problems = _unknown(environment)
    for one in fields(Settings):
        if not one.metadata:
            continue
        value, problem = _read(one, environment)
        optional = need is not None and one.metadata["default"] is None and one.name not in need
        left_out = not environment.get(PREFIX + one.name.upper()) and "is not set" in problem
        if problem and not (optional and left_out):
            problems.append(problem)
        values[one.name] = value if value is not None else _empty(one.name)
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
