"""Loading the modules that declare `jobs`: every fault of every module at once, and which jobs are sound."""

import importlib
import os
import sysconfig
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from shared.declaration import Fault, FaultyDeclaration, collecting_faults
from shared.job import Job
from shared.masking import mask
from shared.packages import OURS

_ROOT = Path(__file__).resolve().parents[1]
_OURS = tuple(f"{_ROOT / name}{os.sep}" for name in OURS)
_LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib"))
_LANGUAGE = sysconfig.get_path("stdlib") + os.sep


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
    first: dict[str, str] = {}
    for module_name, job in declared:
        name, place = str(job.name), f"module {module_name}"
        faults += [fault.within(place) for fault in job.faults]
        if name in first:
            told = f"declares a second job named {name!r}; the first is in module {first[name]}"
            faults.append(Fault(place, told, "a name for each job"))
        if name in first or job.faults:
            quarantined.add(name)
        first.setdefault(name, module_name)
        jobs.setdefault(name, job)
    sound = {name: job for name, job in jobs.items() if name not in quarantined}
    return Loaded(sound, tuple(faults), tuple(sorted(quarantined)))


def _import(name: str, faults: list[Fault]) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an author's module may raise anything
        at = _author_place(error)
        told = mask(f"cannot be imported: {type(error).__name__}: {error}") + (f", at {at}" if at else "")
        faults.append(Fault(f"module {name}", told))
        return None


def _author_place(error: BaseException) -> str:
    """Give FILE:LINE of the deepest frame that is neither ours nor the language's; a library's only without another."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_near(error.filename)}:{error.lineno}"
    own = library = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if file.startswith("<") or file.startswith(_OURS):
            continue
        if file.startswith(_LIBRARIES):
            library = f"{_near(file)}:{line}"
        elif not file.startswith(_LANGUAGE):
            own = f"{_near(file)}:{line}"
    return own or library


def _near(file: str) -> str:
    """Write a path from the folder that the process runs in, where it lies below it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


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
