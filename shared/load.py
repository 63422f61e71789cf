"""Loading the modules that declare `jobs`: every fault of every module at once, and which jobs are sound."""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType

from shared.declaration import Fault, FaultyDeclaration, collecting_faults
from shared.job import Job


@dataclass(frozen=True, slots=True)
class Loaded:
    """The sound jobs by name, and the faults of everything else; `quarantined` names the faulty jobs."""

    jobs: dict[str, Job]
    faults: tuple[Fault, ...]
    quarantined: tuple[str, ...]

    def refuse_faults(self) -> None:
        """Raise FaultyDeclaration if anything is wrong: for the gates of a deploy."""
        if self.faults:
            raise FaultyDeclaration(self.faults)


def load_jobs(modules: Iterable[str]) -> Loaded:
    """Import each module and read its `jobs`; nothing is raised, whatever a module does while it is imported."""
    faults: list[Fault] = []
    declared: list[tuple[str, Job]] = []
    for name in modules:
        with collecting_faults():
            module = _import(name, faults)
        if module is not None:
            declared += [(name, job) for job in _read(name, module, faults)]
    jobs: dict[str, Job] = {}
    quarantined: set[str] = set()
    for name, job in declared:
        faults += [fault.within(f"module {name}") for fault in job.faults]
        if job.faults:
            quarantined.add(str(job.name))
        elif job.name in jobs:
            faults.append(Fault(f"module {name}", f"declares a second job named {job.name!r}", "a name for each job"))
            quarantined.add(job.name)
        else:
            jobs[job.name] = job
    sound = {name: job for name, job in jobs.items() if name not in quarantined}
    return Loaded(sound, tuple(faults), tuple(sorted(quarantined)))


def _import(name: str, faults: list[Fault]) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an author's module may raise anything
        faults.append(Fault(f"module {name}", f"cannot be imported: {type(error).__name__}: {error}"))
        return None


def _read(name: str, module: ModuleType, faults: list[Fault]) -> list[Job]:
    declared = getattr(module, "jobs", None)
    if not isinstance(declared, list | tuple):
        faults.append(Fault(f"module {name}", "has no list named `jobs`", "jobs = [Job(…), …]"))
        return []
    found = [job for job in declared if isinstance(job, Job)]
    if len(found) < len(declared):
        wrong = next(one for one in declared if not isinstance(one, Job))
        faults.append(Fault(f"module {name}", f"`jobs` holds {wrong!r}", "Job(…) only"))
    return found
