"""The evidence that a handler may run any number of times: which code `try --twice` has shown to change nothing."""

import hashlib
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from shared.job import Job
from shared.job_faults import function_name
from shared.postgres import Session
from shared.sql_files import statement
from shared.version import VERSION

RECORD_TRIAL = statement("worker", "record_trial")


def mark_of(function: Callable[..., Any]) -> str:
    """Give what tells a handler's code from another's: a hash of its name and of its own source text.

    What it calls is not looked into, nor are its libraries.
    """
    name = function_name(function)
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    except (OSError, TypeError):
        # An object that is called, or code without a file: its name is all there is.
        source = ""
    return hashlib.sha256(f"{name}\n{source}".encode()).hexdigest()


async def record_trial(session: Session, job: Job, function: Callable[..., Any], actor: str) -> None:
    """Record that a second run of the job's handler, as it is now, has changed nothing."""
    await session.execute(RECORD_TRIAL, job.name, mark_of(function), actor, VERSION)
