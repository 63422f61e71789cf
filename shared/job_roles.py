"""Which database roles and logins a job asks for, under the names that its author gives them."""

from shared.accounts import SqlAccounts
from shared.job import Job


def source_role(job: Job) -> str | None:
    """Give the role under which a trigger reads the job's accounts; None: the trigger's own."""
    if not isinstance(job.accounts, SqlAccounts):
        return None
    return job.accounts.role or job.handler.role or job.handler.login


def handler_role(job: Job) -> str | None:
    """Give the role that a worker takes around the job's handler; None: the worker's own, or the job has a login."""
    return job.handler.role


def handler_login(job: Job) -> str | None:
    """Give the login that the job's handler has for itself."""
    return job.handler.login
