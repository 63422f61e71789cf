"""The commands of a deploy: check, migrate, serve."""

import contextlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import anyio
import typer

from shared.job import Job
from shared.load import Loaded, load_jobs
from shared.packages import AmbiguousPackage, check_packages
from shared.settings import FaultySettings, Settings, load_settings
from shared.terminal import REFUSED, Refused, given, print_json, run, say, settings_for, told
from shared.terminal_tables import print_line
from shared.zones import tzdata_version, tzdata_warning
from trigger.commands_options import AsJson
from trigger.reach import unknown_job

PROGRAM = "trigger"


def serve_command(
    *,
    migrate: Annotated[
        bool, typer.Option("--migrate", help="First migrate the database and the broker; any number may do it at once.")
    ] = False,
) -> None:
    """Plan, claim, fan out, publish and sweep until SIGTERM; then drain within MATINS_GRACE_PERIOD and exit 0.

    A second signal ends the process at once. Faulty settings, or servers of another environment, exit with 2.
    """
    from shared.lifecycle import leave  # noqa: PLC0415 - a command loads only what it uses
    from shared.start import prepare  # noqa: PLC0415 - a command loads only what it uses
    from trigger.deploy import migrate_patiently  # noqa: PLC0415 - a command loads only what it uses
    from trigger.service import serve  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        prepared = prepare(PROGRAM)
        if migrate:
            anyio.run(migrate_patiently, prepared)
        leave(anyio.run(serve, prepared))


def check_command(
    *,
    jobs: Annotated[
        str, typer.Option("--jobs", envvar="MATINS_JOBS", metavar="MODULES", help="The modules, with commas between.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Check settings and jobs, without any server: every fault at once, and exit code 2 for any.

    Settings that are missing but that this command doesn't need are warned about.
    """
    with told(PROGRAM):
        faults, warnings = _settings_faults(jobs)
        loaded = _loaded_for_check(jobs, faults)
        faults += [str(fault) for fault in loaded.faults]
        warnings += [f"job {job.name!r}: {one}" for job in loaded.jobs.values() for one in job.schedule.warnings()]
        if warning := tzdata_warning():
            warnings.append(warning)
        if as_json:
            print_json({"ok": not faults, "jobs": sorted(loaded.jobs), "faults": faults, "warnings": warnings})
        else:
            _say_checked(loaded, faults, warnings)
    if faults:
        raise typer.Exit(REFUSED)


def migrate_command(
    *,
    only: Annotated[
        Literal["database", "broker"] | None, typer.Option("--only", help="Prepare one of the two servers.")
    ] = None,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the SQL for an administrator of an empty database; touch nothing.")
    ] = False,
    definitions: Annotated[
        bool, typer.Option("--definitions", help="Print the broker's parts as RabbitMQ imports them; touch nothing.")
    ] = False,
    virtual_host: Annotated[str, typer.Option("--virtual-host", help="For --definitions.")] = "/",
    as_json: AsJson = False,
) -> None:
    """Bring the database to this release's schema, and make and record the broker's parts. Nothing is ever deleted.

    Faulty jobs, servers of another environment, and a queue that exists with another argument exit with 2.
    """
    from shared.start import topology_of  # noqa: PLC0415 - a command loads only what it uses
    from trigger.deploy import sql_script  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        need = {"database": ("database_url",), "broker": ("broker_url",), None: ("database_url", "broker_url")}[only]
        settings = settings_for("environment", "jobs", *(() if sql or definitions else need))
        loaded = load_for(settings)
        loaded.refuse_faults()
        topology = topology_of(settings, loaded.jobs)
        if sql:
            sys.stdout.write(sql_script(settings.environment, topology))
        if definitions:
            print_json(topology.definitions(virtual_host))
        if not sql and not definitions:
            _say_migrated(run(lambda: _migrate(settings, loaded.jobs, only)), as_json=as_json)


def load_for(settings: Settings) -> Loaded:
    """Load the jobs' modules, whose prints go to standard error."""
    check_packages()
    with contextlib.redirect_stdout(sys.stderr):
        return load_jobs(settings.jobs)


async def _migrate(settings: Settings, jobs: dict[str, Job], only: str | None) -> dict[str, Any]:
    from shared.start import topology_of  # noqa: PLC0415 - a command loads only what it uses
    from trigger.deploy import migrate_broker, migrate_database  # noqa: PLC0415 - a command loads only what it uses

    topology = topology_of(settings, jobs)
    done: dict[str, Any] = {"environment": settings.environment, "database": None, "broker": None}
    if only != "broker":
        applied = await migrate_database(settings)
        done["database"] = {"applied": [f"{one.version:04d}_{one.name}" for one in applied]}
    if only != "database":
        record = bool(given(settings, "database_url"))
        await migrate_broker(settings, topology, record=record)
        queues = sorted(topology.as_record()["queues"])
        done["broker"] = {"prefix": settings.prefix, "queues": queues, "recorded": record}
    return done


def _say_migrated(done: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    if done["database"] is not None:
        applied = ", ".join(done["database"]["applied"]) or "nothing to apply"
        print_line(f"database of environment {done['environment']!r}: {applied}; the schema is current")
    if done["broker"] is not None:
        print_line(f"broker, prefix {done['broker']['prefix']!r}: {len(done['broker']['queues'])} queues are there")
        if not done["broker"]["recorded"]:
            say(PROGRAM, "not recorded in the database, since MATINS_DATABASE_URL is not set: run migrate with it")


def _settings_faults(jobs: str) -> tuple[list[str], list[str]]:
    """Give the faulty settings, and those that are missing and not needed here."""
    faults, all_lines = _problems(frozenset()), _problems(None)
    missing = [line for line in all_lines if line not in faults and not line.startswith("MATINS_JOBS")]
    if not jobs:
        faults += [line for line in all_lines if line.startswith("MATINS_JOBS") and line not in faults]
    try:
        check_packages()
    except AmbiguousPackage as error:
        faults += str(error).split("\n")
    return faults, missing


def _problems(need: frozenset[str] | None) -> list[str]:
    try:
        load_settings(need=need)
    except FaultySettings as error:
        return str(error).split("\n")
    return []


def _loaded_for_check(jobs: str, faults: list[str]) -> Loaded:
    """Load the modules also when other settings are faulty; a faulty list of modules is a fault of its own."""
    if not jobs:
        return Loaded({}, (), ())
    try:
        return load_for(load_settings({"MATINS_JOBS": jobs}, need=frozenset({"jobs"})))
    except FaultySettings as error:
        faults += [line for line in str(error).split("\n") if line not in faults]
    except AmbiguousPackage:
        pass
    return Loaded({}, (), ())


def _say_checked(loaded: Loaded, faults: Sequence[str], warnings: Sequence[str]) -> None:
    for warning in warnings:
        say(PROGRAM, f"warning: {warning}")
    for fault in faults:
        say(PROGRAM, fault)
    sound = ", ".join(sorted(loaded.jobs)) or "none"
    print_line(f"tzdata {tzdata_version()}; sound jobs: {sound}; faults: {len(faults)}; warnings: {len(warnings)}")


def refuse_unknown(name: str, loaded: Loaded) -> Job:
    """Give a declared job. Raises Refused when it is faulty or not declared."""
    if name in loaded.jobs:
        return loaded.jobs[name]
    if name in loaded.quarantined:
        loaded.refuse_faults()
    for fault in loaded.faults:
        say(PROGRAM, str(fault))
    raise Refused(unknown_job(name, sorted(loaded.jobs)))
