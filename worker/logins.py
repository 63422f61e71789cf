"""The database logins that jobs have for themselves, a pool for each; and whether roles are as the jobs name them.

What is wrong with one of them makes the worker not ready and holds the job that names it; other jobs run.
"""

from collections.abc import Awaitable, Callable, Mapping

from shared.errors import MatinsError
from shared.job import Job, Outside
from shared.job_roles import handler_login, handler_role
from shared.logs import logger
from shared.postgres import Database, Session
from shared.role_check import untakeable_roles
from shared.settings import FaultySettings
from shared.sql_files import statement
from shared.start import Prepared

LOGINS_OF_JOBS = statement("worker", "logins_of_jobs")
_log = logger(__name__)


class Logins:
    """A pool for each login under which this worker runs a job's code."""

    def __init__(self, prepared: Prepared, jobs: Mapping[str, Job]) -> None:
        """Read every login's address. Raises FaultySettings with all faults at once."""
        settings = prepared.settings
        self._names = settings.database_roles
        self._roles: dict[str, list[str]] = {}
        # An outside call's own code connects by itself.
        slots: dict[str, int] = {}
        self._jobs = {name: login for name, job in jobs.items() if (login := handler_login(job))}
        for name, job in jobs.items():
            if role := handler_role(job):
                self._roles.setdefault(self._names.of(role), []).append(name)
            if name in self._jobs and not isinstance(job.handler, Outside):
                slots[self._jobs[name]] = slots.get(self._jobs[name], 0) + job.handler.concurrency
        problems = []
        for login in slots:
            try:
                settings.login_url(login)
            except FaultySettings as error:
                problems.append(str(error))
        if problems:
            raise FaultySettings("\n".join(problems))
        self._pools = {
            login: prepared.database(min(settings.pool_size, size), login=login) for login, size in slots.items()
        }
        self._unseen = set(self._pools)
        self.problem: str | None = None

    def pool(self, job: Job) -> Database | None:
        """Give the pool in which a job's code runs; None: it has no login, or connects by itself."""
        login = handler_login(job)
        return self._pools.get(login) if login is not None else None

    def examine_new(self, beside: Database, examine: Callable[[Session], Awaitable[None]]) -> None:
        """Have the database examined at every new connection of a login, on one of `beside`: the login may not look."""

        async def examine_beside(_: Session) -> None:
            async with beside.session() as session:
                await examine(session)

        for pool in self._pools.values():
            pool.examine_new(examine_beside)

    async def open(self) -> None:
        """Make the pools."""
        for pool in self._pools.values():
            await pool.open()

    async def close(self) -> None:
        """Close the pools."""
        for pool in self._pools.values():
            await pool.close()

    async def look(self, session: Session) -> None:
        """Note what is wrong; a login that was seen once to be right isn't looked at again."""
        problems = await untakeable_roles(session, self._roles)
        problems += await self._unrecorded(session)
        for login in sorted(self._unseen):
            if problem := await self._wrong(login):
                problems.append(problem)
            else:
                self._unseen.discard(login)
        told = "; ".join(problems) or None
        if told is not None and told != self.problem:
            _log.error("jobs cannot run as they are declared", reason=told)
        self.problem = told

    async def _unrecorded(self, session: Session) -> list[str]:
        rows = await session.fetch(LOGINS_OF_JOBS, list(self._jobs)) if self._jobs else []
        recorded = {(row["login"], row["job"]) for row in rows}
        return [
            f"login {self._names.of(login)} is not recorded as that of job {job}: run migrate with this declaration"
            for job, login in self._jobs.items()
            if (self._names.of(login), job) not in recorded
        ]

    async def _wrong(self, login: str) -> str:
        """Say what is wrong with a login's address, '' for nothing."""
        wanted = self._names.of(login)
        try:
            async with self._pools[login].session() as session:
                found = await session.fetchval("select session_user::text")
        except MatinsError as error:
            return f"login {wanted}: {error}"
        return "" if found == wanted else f"login {wanted}: its address logs in as {found}"
