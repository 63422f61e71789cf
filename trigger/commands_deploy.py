"""The commands of a deploy: migrate, serve; and how commands load jobs."""

import contextlib
import sys
from typing import Annotated, Any, Literal

import anyio
import typer

from shared.job import Job
from shared.load import Loaded, load_jobs
from shared.packages import check_packages
from shared.settings import Settings
from shared.terminal import FAILED, Refused, given, print_json, run, say, settings_for, told
from shared.terminal_tables import print_line
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

    The database's roles get the rights that they need and no others. Roles that this login may not make are named, each
    with the statement that makes it, for an administrator.

    Exit code 1: an administrator must run what is printed, and then migrate again. Faulty jobs, servers of another
    environment, and a queue that exists with another argument exit with 2.
    """
    from shared.start import topology_of  # noqa: PLC0415 - a command loads only what it uses
    from trigger.database_roles import plan_for  # noqa: PLC0415 - a command loads only what it uses
    from trigger.deploy import sql_script  # noqa: PLC0415 - a command loads only what it uses

    with told(PROGRAM):
        _refuse_together({"--sql": sql, "--definitions": definitions, "--only": bool(only)})
        need = {"database": ("database_url",), "broker": ("broker_url",), None: ("database_url", "broker_url")}[only]
        settings = settings_for("environment", "jobs", *(() if sql or definitions else need))
        loaded = load_for(settings)
        loaded.refuse_faults()
        topology = topology_of(settings, loaded.jobs)
        if sql:
            sys.stdout.write(sql_script(settings.environment, topology, plan_for(settings.database_roles, loaded.jobs)))
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
    from trigger.deploy import follow_roles, migrate_broker, migrate_database  # noqa: PLC0415 - a command loads only what it uses

    topology = topology_of(settings, jobs)
    done: dict[str, Any] = {"environment": settings.environment, "database": None, "roles": None, "broker": None}
    if only != "broker":
        applied = await migrate_database(settings)
        roles = await follow_roles(settings, jobs)
        done["database"] = {"applied": [f"{one.version:04d}_{one.name}" for one in applied]}
        done["roles"] = {"done": roles.done, "administrator": roles.asked}
    if only != "database":
        record = bool(given(settings, "database_url"))
        await migrate_broker(settings, topology, record=record)
        queues = sorted(topology.as_record()["queues"])
        done["broker"] = {"prefix": settings.prefix, "queues": queues, "recorded": record}
    return done


def _refuse_together(options: dict[str, bool]) -> None:
    chosen = [name for name, is_set in options.items() if is_set]
    if len(chosen) > 1:
        raise Refused(f"{' and '.join(chosen)} do different things: give one of them")


def _say_migrated(done: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(done)
    else:
        _print_migrated(done)
    if done["roles"] and done["roles"]["administrator"]:
        raise typer.Exit(FAILED)


def _print_migrated(done: dict[str, Any]) -> None:
    if done["database"] is not None:
        applied = ", ".join(done["database"]["applied"]) or "nothing to apply"
        print_line(f"database of environment {done['environment']!r}: {applied}; the schema is current")
        _say_roles(done["roles"])
    if done["broker"] is not None:
        print_line(f"broker, prefix {done['broker']['prefix']!r}: {len(done['broker']['queues'])} queues are there")
        if not done["broker"]["recorded"]:
            say(PROGRAM, "not recorded in the database, since MATINS_DATABASE_URL is not set: run migrate with it")


def _say_roles(roles: dict[str, list[str]]) -> None:
    asked = roles["administrator"]
    print_line(f"roles: {len(roles['done'])} statements were run" if roles["done"] else "roles: as they should be")
    if asked:
        block = "\n".join(f"{text};" for text in asked)
        say(PROGRAM, f"an administrator of the database must run this, and then migrate again:\n{block}")


def refuse_unknown(name: str, loaded: Loaded) -> Job:
    """Give a declared job. Raises Refused when it is faulty or not declared."""
    if name in loaded.jobs:
        return loaded.jobs[name]
    if name in loaded.quarantined:
        loaded.refuse_faults()
    for fault in loaded.faults:
        say(PROGRAM, str(fault))
    raise Refused(unknown_job(name, sorted(loaded.jobs)))
