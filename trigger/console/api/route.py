"""One question of the JSON, or one act: where it is, what it takes and gives. The table of them is the description."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from shared.postgres import Session
from trigger.console.admission import Admitted
from trigger.console.api.fields import Schema
from trigger.console.api.parameters import Parameter
from trigger.console.place import Place


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the path as texts, the query as it was read; and by whom, if people sign in."""

    place: Place
    values: Mapping[str, Any] = field(default_factory=dict)
    admitted: Admitted | None = None

    def __getitem__(self, name: str) -> Any:
        """Give a value."""
        return self.values[name]

    @asynccontextmanager
    async def view(self) -> AsyncIterator[Session]:
        """Have a session meanwhile in which all statements see the same, and none changes anything."""
        async with (
            self.place.database.session() as session,
            session.transaction(isolation="repeatable_read", readonly=True),
        ):
            yield session


# Gives plain values, or a Kept of them; raises Refused for what there is not, Unanswerable for what cannot be asked.
ReadValues = Callable[[Question], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Read:
    """One question; `path` is below PREFIX. `kept` says that the answer may be some seconds old, which it says."""

    path: str
    name: str
    told: str
    gives: Schema
    read: ReadValues
    parameters: tuple[Parameter, ...] = ()
    kept: bool = False
