"""Deploy markers: each service says at its start which version of it runs, so that a change can be seen beside them."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from shared.fleet import Instance
from shared.postgres import Session
from shared.sql_files import statement

RECORD_DEPLOY = statement("shared", "record_deploy")
RESOURCE: Final = "OTEL_RESOURCE_ATTRIBUTES"


def system_of(kind: str) -> str:
    """Name what a service of `kind` (trigger or worker) is marked as: its name in traces and metrics."""
    return f"matins-{kind}"


def deployed_version(otel: Mapping[str, str], release: str) -> str:
    """Give the version of what was deployed: `service.version` of the standard variable for it, else our `release`.

    Our release alone would not tell of a change in the jobs' own code.
    """
    for pair in otel.get(RESOURCE, "").split(","):
        name, _, value = pair.partition("=")
        if name.strip() == "service.version" and value.strip():
            return unquote(value.strip())[:200]
    return release


async def record_deploy(session: Session, instance: Instance, version: str) -> None:
    """Mark that `version` of the process's service runs, unless that is the version that was marked last."""
    await session.execute(RECORD_DEPLOY, system_of(instance.kind), version, instance.id)
