"""The command `check`: settings and jobs, judged before a deploy."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from shared import clock
from shared.job import Job
from shared.load import Loaded
from shared.masking import mask, text_of
from shared.packages import AmbiguousPackage, check_packages
from shared.settings import FaultySettings, Settings, load_settings
from shared.terminal import FAILED, REFUSED, given, print_json, run, say, told
from shared.terminal_tables import print_line
from shared.zones import tzdata_version, tzdata_warning
from trigger.commands_deploy import PROGRAM, load_for
from trigger.commands_options import AsJson
from trigger.lint import Judged, LastRuns, judge_job, judge_last_runs, judge_leases

Jobs = dict[str, Job]
_LEVELS = ("error", "warning", "note")


def check_command(
    *,
    jobs: Annotated[
        str, typer.Option("--jobs", envvar="MATINS_JOBS", metavar="MODULES", help="The modules, with commas between.")
    ] = "",
    database: Annotated[
        bool, typer.Option("--database", help="Compare with what the last runs took, as MATINS_DATABASE_URL has them.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 for warnings.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check settings and jobs, and judge them: each finding says where, why, and what to write instead.

    Exit code 2 for errors: everything that cannot work, all at once. Warnings, of what is valid and will hurt some
    night, are 0, or 1 with --strict. Notes tell what was decided, and which settings are missing that this command
    doesn't need. No server is asked, unless --database is given.
    """
    with told(PROGRAM):
        findings, settings = _settings_findings(jobs)
        loaded = _loaded(jobs, findings)
        findings += [Judged("error", fault.place, fault.problem, fault.valid) for fault in loaded.faults]
        findings += _judged(loaded.jobs, settings)
        if database:
            findings += _last_runs(loaded.jobs, settings)
        worst = _code(findings, strict=strict)
        if as_json:
            print_json(_as_json(loaded, findings, ok=worst == 0))
        else:
            _print(loaded, findings)
    if worst:
        raise typer.Exit(worst)


def _judged(jobs: Jobs, settings: Settings | None) -> list[Judged]:
    now = clock.utc_now()
    prefetch = load_settings({}, need=frozenset()).prefetch if settings is None else settings.prefetch
    findings = [found for _, job in sorted(jobs.items()) for found in judge_job(job, now, prefetch=prefetch)]
    if settings is not None:
        findings += judge_leases(
            settings.claim_lease, settings.outside_lease, settings.tick_interval, settings.sweep_interval
        )
    if warning := tzdata_warning():
        findings.append(Judged("note", "time zones", warning))
    return findings


def _last_runs(jobs: Jobs, settings: Settings | None) -> list[Judged]:
    """Compare with the database, or say why that could not be."""
    place = "--database"
    try:
        url = given(settings, "database_url") if settings is not None else ""
        if settings is None or not url:
            return [Judged("warning", place, "what the last runs took was not looked at", "set MATINS_DATABASE_URL")]
        runs = run(lambda: _read(settings, sorted(jobs)))
    except Exception as error:  # noqa: BLE001 - whatever keeps it from being read is told
        told = mask(f"what the last runs took cannot be read: {type(error).__name__}: {text_of(error)}")
        return [Judged("warning", place, told, "an address that answers, and a login that may read")]
    now = clock.utc_now()
    return [found for name, job in sorted(jobs.items()) for found in judge_last_runs(job, runs.get(name), now)]


async def _read(settings: Settings, names: Sequence[str]) -> dict[str, LastRuns]:
    from trigger.last_runs import read_last_runs  # noqa: PLC0415 - a command loads only what it uses
    from trigger.reach import reach  # noqa: PLC0415 - a command loads only what it uses

    async with reach(settings) as session:
        return await read_last_runs(session, names)


def _settings_findings(jobs: str) -> tuple[list[Judged], Settings | None]:
    """Give what is wrong with the settings, and them themselves if nothing is."""
    faults, settings = _problems(frozenset())
    every, _ = _problems(None)
    findings = [_of_setting("error", line) for line in faults]
    for line in every:
        if line not in faults:
            needed = line.startswith("MATINS_JOBS")
            if not needed or not jobs:
                findings.append(_of_setting("error" if needed else "note", line))
    try:
        check_packages()
    except AmbiguousPackage as error:
        findings += [Judged("error", "packages", line) for line in str(error).split("\n")]
    return findings, settings


def _problems(need: frozenset[str] | None) -> tuple[list[str], Settings | None]:
    try:
        return [], load_settings(need=need)
    except FaultySettings as error:
        return str(error).split("\n"), None


def _of_setting(level: str, line: str) -> Judged:
    """Read the place, which is a variable's name, out of a line that the settings give."""
    name, _, rest = line.partition(" ")
    place = name.rstrip(":") if name.startswith("MATINS_") else "settings"
    return Judged("error" if level == "error" else "note", place, rest if place != "settings" else line)


def _loaded(jobs: str, findings: list[Judged]) -> Loaded:
    """Load the modules also when other settings are faulty; a faulty list of modules is a fault of its own."""
    if not jobs:
        return Loaded({}, (), ())
    try:
        return load_for(load_settings({"MATINS_JOBS": jobs}, need=frozenset({"jobs"})))
    except FaultySettings as error:
        known = {str(one) for one in findings}
        found = [_of_setting("error", line) for line in str(error).split("\n")]
        findings += [one for one in found if str(one) not in known]
    except AmbiguousPackage:
        pass
    return Loaded({}, (), ())


def _code(findings: Sequence[Judged], *, strict: bool) -> int:
    levels = {one.level for one in findings}
    if "error" in levels:
        return REFUSED
    return FAILED if strict and "warning" in levels else 0


def _as_json(loaded: Loaded, findings: Sequence[Judged], *, ok: bool) -> dict[str, object]:
    return {"ok": ok, "jobs": sorted(loaded.jobs), "findings": [asdict(one) for one in findings]}


def _print(loaded: Loaded, findings: Sequence[Judged]) -> None:
    for level in reversed(_LEVELS):
        for one in findings:
            if one.level == level:
                say(PROGRAM, str(one) if level == "error" else f"{level}: {one}")
    levels: list[str] = [one.level for one in findings]
    counts = [f"{count} {level}{'' if count == 1 else 's'}" for level in _LEVELS for count in [levels.count(level)]]
    sound = ", ".join(sorted(loaded.jobs)) or "none"
    print_line(f"tzdata {tzdata_version()}; sound jobs: {sound}; {', '.join(counts)}")
