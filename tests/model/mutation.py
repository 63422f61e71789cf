"""Taking a rule away: a text edit of one statement, or of one function of the product, for the length of a run."""

import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.model.steps import FILES

PACKAGES = ("schemas", "shared", "tests", "trigger", "worker")


@dataclass(frozen=True, slots=True)
class Edit:
    """`place` is a statement's file name, or `package.module:function`; each `old` must be there, once."""

    place: str
    old: str
    new: str

    def of_statement(self, text: str) -> str:
        """Give the edited statement."""
        return _replaced(self, text)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rule taken away: which, how, and who must notice.

    That is a directed schedule, or a number of seeds of a profile.
    """

    rule: str
    name: str
    edits: tuple[Edit, ...]
    profile: str
    first_seed: int = 1
    seeds: int = 40

    def statements(self) -> dict[str, str]:
        """Give the edited statements by name."""
        edited: dict[str, str] = {}
        for edit in self.edits:
            if ":" not in edit.place:
                name = edit.place
                text = edited.get(name) or FILES[name].read_text(encoding="utf-8")
                edited[name] = edit.of_statement(text)
        return edited

    @contextmanager
    def functions(self) -> Iterator[None]:
        """Have the edited functions in the product's place meanwhile."""
        places: dict[str, list[Edit]] = {}
        for edit in self.edits:
            if ":" in edit.place:
                places.setdefault(edit.place, []).append(edit)
        with ExitStack() as stack:
            for place, edits in places.items():
                stack.enter_context(_edited(place, edits))
            yield


def _replaced(edit: Edit, text: str) -> str:
    found = text.count(edit.old)
    if found != 1:
        problem = f"{edit.place} has {found} places that read {edit.old!r}"
        raise LookupError(problem)
    return text.replace(edit.old, edit.new)


@contextmanager
def _edited(place: str, edits: list[Edit]) -> Iterator[None]:
    module_name, _, path = place.partition(":")
    module = sys.modules[module_name]
    owner: Any = module
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    given = vars(owner)[name]
    original: Any = given.fget if isinstance(given, property) else inspect.unwrap(given)
    source = textwrap.dedent(inspect.getsource(original))
    for edit in edits:
        source = _replaced(edit, source)
    space: dict[str, Any] = {}
    code = compile(f"from __future__ import annotations\n{source}", f"<{place}, edited>", "exec")
    exec(code, module.__dict__, space)  # noqa: S102 - the product's own text, but for the edit
    changed = space[name]
    holders = [owner] if owner is not module else _importers()
    replaced = [(holder, key) for holder in holders for key, value in list(vars(holder).items()) if value is given]
    for holder, key in replaced:
        setattr(holder, key, changed)
    try:
        yield
    finally:
        for holder, key in replaced:
            setattr(holder, key, given)


def _importers() -> list[Any]:
    return [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in PACKAGES]
