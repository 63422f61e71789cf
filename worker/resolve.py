"""Finding the code of the jobs: only workers do it, so that a trigger needs none of a job's dependencies."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

from shared.job import Job
from shared.job_faults import handler_faults
from shared.masking import mask
from worker.invoke import Function


@dataclass(frozen=True, slots=True)
class Resolved:
    """The functions that this worker can call, by job; and why it cannot call the others."""

    functions: dict[str, Function]
    problems: dict[str, str]

    def as_record(self) -> dict[str, str | None]:
        """Give what the worker publishes of itself: by job, None or why its handler cannot be called."""
        return {**dict.fromkeys(self.functions), **self.problems}


def resolve(jobs: Mapping[str, Job]) -> Resolved:
    """Import the handlers that are given as text; nothing is raised, whatever a module does while it is imported.

    What runs elsewhere has no code that a worker could call, and is left out.
    """
    resolved = Resolved({}, {})
    for name, job in jobs.items():
        if job.coordination == "elsewhere":
            continue
        declared = job.handler.handler
        try:
            function = _import(declared) if isinstance(declared, str) else declared
        except (Exception, SystemExit) as error:  # noqa: BLE001 - an author's module may raise anything
            resolved.problems[name] = mask(f"{declared}: {type(error).__name__}: {error}")
            continue
        faults = handler_faults("handler", function, type(job.handler).__name__)
        if faults:
            resolved.problems[name] = f"{declared}: {faults[0]}"
        else:
            resolved.functions[name] = function
    return resolved


def _import(reference: str) -> Function:
    module, _, name = reference.partition(":")
    function: Function = getattr(importlib.import_module(module), name)
    return function
