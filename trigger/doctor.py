"""Whether everything that a deployment needs is as it should be: a line for each check, with what to do about it."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from shared.errors import MatinsError
from shared.job import Job
from shared.load import load_jobs
from shared.settings import FaultySettings, Settings, load_settings
from shared.start import topology_of
from shared.terminal import given
from shared.topology import Topology
from shared.zones import tzdata_version, tzdata_warning
from trigger.doctor_broker import check_broker
from trigger.doctor_database import Looked, check_database
from trigger.doctor_finding import Finding, fail, ok, warn
from trigger.doctor_fleet import check_fleet
from trigger.doctor_queues import check_old_queues

NEEDED = ("environment", "jobs", "database_url", "broker_url")


@dataclass(frozen=True, slots=True)
class _Declared:
    jobs: dict[str, Job]
    topology: Topology | None


async def examine(sources: Mapping[str, str] | None = None) -> AsyncIterator[Finding]:
    """Give the findings one by one, each check on its own: what cannot be reached fails its own checks only.

    `sources` are the variables that the settings are read from, by default the environment's.
    """
    try:
        settings = load_settings(sources, need=frozenset())
    except FaultySettings as error:
        for line in str(error).split("\n"):
            yield fail("settings", line, "correct it; the README lists every setting")
        return
    for finding in _settings(settings):
        yield finding
    declared, findings = _jobs(settings)
    for finding in (*findings, _zones()):
        yield finding
    looked = Looked()
    if _set(settings, "database_url"):
        async for finding in check_database(settings, declared.topology, declared.jobs, looked):
            yield finding
    async for finding in _broker(settings, declared, looked):
        yield finding
    for finding in check_fleet(looked, declared.jobs) if looked.reached else ():
        yield finding


async def _broker(settings: Settings, declared: _Declared, looked: Looked) -> AsyncIterator[Finding]:
    if _set(settings, "broker_url"):
        live_workers = any(one["kind"] == "worker" for one in looked.instances)
        async for finding in check_broker(settings, declared.topology, live_workers=live_workers):
            yield finding
        if declared.topology is not None:
            async for finding in check_old_queues(settings, declared.topology, looked.topology):
                yield finding


def _set(settings: Settings, name: str) -> bool:
    value: Any = given(settings, name) if name.endswith("_url") else getattr(settings, name)
    return bool(value)


def _settings(settings: Settings) -> list[Finding]:
    missing = [f"MATINS_{name.upper()}" for name in NEEDED if not _set(settings, name)]
    if missing:
        return [fail("settings", f"not set: {', '.join(missing)}", "set them; what needs them was not checked")]
    return [ok("settings", f"environment {settings.environment!r}, prefix {settings.prefix!r}")]


def _jobs(settings: Settings) -> tuple[_Declared, list[Finding]]:
    if not settings.jobs:
        return _Declared({}, None), []
    loaded = load_jobs(settings.jobs)
    findings = [fail("jobs", str(fault), "correct the declaration, and deploy again") for fault in loaded.faults]
    for job in loaded.jobs.values():
        findings += [warn("jobs", f"{job.name}: {doubt.why}", doubt.instead) for doubt in job.schedule.warnings()]
    if not findings:
        findings = [ok("jobs", ", ".join(sorted(loaded.jobs)) or "none declared")]
    topology = None
    if settings.environment:
        try:
            topology = topology_of(settings, loaded.jobs)
        except MatinsError as error:
            findings.append(fail("jobs", str(error), "correct the names"))
    return _Declared(loaded.jobs, topology), findings


def _zones() -> Finding:
    return ok("time zones", tzdata_warning() or f"tzdata {tzdata_version()}")
