"""Whether this trigger can take the roles under which its jobs' accounts are read."""

from collections.abc import Mapping

from shared.job import Job
from shared.job_roles import source_role
from shared.logs import logger
from shared.postgres import Session
from shared.role_check import untakeable_roles
from shared.role_names import RoleNames

_log = logger(__name__)


class SourceRoles:
    """The roles of the jobs' account sources; `problem` names those that cannot be taken."""

    def __init__(self, jobs: Mapping[str, Job], names: RoleNames) -> None:
        """Gather the roles under their names on this cluster."""
        self._jobs_by_role: dict[str, list[str]] = {}
        for name, job in jobs.items():
            if role := source_role(job):
                self._jobs_by_role.setdefault(names.of(role), []).append(name)
        self.problem: str | None = None

    async def look(self, session: Session) -> None:
        """Note what is wrong now."""
        problem = "; ".join(await untakeable_roles(session, self._jobs_by_role)) or None
        if problem is not None and problem != self.problem:
            _log.error("accounts cannot be read as their jobs declare", reason=problem)
        self.problem = problem
