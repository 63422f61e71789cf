"""What a console stands on, and what a page is: its path, its template, how it is read, and how old it may be."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from shared.postgres import Database
from shared.settings import Settings
from trigger.console.admission import Admission
from trigger.console.keeping import Keeping

# What most pages show: as of their first reading by anybody, at most this old; and how old while they are read anew.
GLANCE_SECONDS: Final = 2.0
STALE_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class Place:
    """A console: its settings, the database, what it has read, and the process that it is part of.

    `admission` lets people in; without it nobody signs in, whoever reaches the console looks, and nobody acts.
    """

    settings: Settings
    database: Database
    keeping: Keeping
    instance: str
    host: str
    admission: Admission | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a page was asked for: the values in its path, and those behind the question mark."""

    place: Place
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)


Values = dict[str, Any]
ReadPage = Callable[[Asked], Awaitable[Values]]


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `read` gives the template's values, `title` among them; it raises Refused for what there is not.

    `queries` are the names behind the question mark that it knows. With `fresh_for` 0 it is read for each who asks.
    """

    path: str
    template: str
    read: ReadPage
    section: str
    queries: frozenset[str] = frozenset()
    fresh_for: float = 0.0
    stale_for: float = 0.0
