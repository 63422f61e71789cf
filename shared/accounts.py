"""Where the accounts of an occurrence come from: SQL, or a generator of the author's own.

Accounts are read once, in the order of a cursor that only the source understands. The fan-out stores the cursor with
the page that it ends, so that another trigger can go on from it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.occurrence import Identity
from shared.calls import Window
from shared.declaration import Fault, keep_faults
from shared.explained import explain_mistakes, left_out_faults
from shared.job_faults import role_faults

MAXIMUM_PAGE_SIZE = 10_000


@explain_mistakes
@dataclass(frozen=True, slots=True)
class SqlAccounts:
    """Accounts from one query, paged by us.

    The query gives a text column `account`, and, if the accounts should be read in another order than their own ids',
    a column `cursor` of any sortable type. It may use `:since` and `:until`, the occurrence's window (timestamptz), and
    runs in a read-only transaction under `role` (by default the role or the login of the job's handler). We add the
    ordering, the position and the limit ourselves, so ties of `cursor` are never skipped at the end of a page.
    """

    query: str
    page_size: int = 1000
    role: str | None = None
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check what can be checked without a server."""
        keep_faults(self, _page_size_faults(self.page_size), _query_faults(self.query), role_faults("role", self.role))


@dataclass(frozen=True, slots=True)
class AccountAt:
    """One account and the cursor behind it: the text from which the generator can go on after this account."""

    account: str
    cursor: str


@dataclass(frozen=True, slots=True)
class SourceCall:
    """What a generator of accounts receives; `cursor` is None at first, later the last stored one."""

    occurrence: Identity
    window: Window
    cursor: str | None


@explain_mistakes
@dataclass(frozen=True, slots=True)
class GeneratedAccounts:
    """Accounts from an async generator, which runs in the trigger: `async def tenants(call): yield AccountAt(…)`.

    The generator must give the accounts in the order of its cursor, start behind `call.cursor`, and never repeat a
    cursor. It may be given as ``"package.module:function"``.
    """

    generator: Callable[[SourceCall], AsyncIterator[AccountAt]] | str
    page_size: int = 1000
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the page size."""
        left_out = left_out_faults(self, {"generator": 'an async generator function, or "package.module:function"'})
        keep_faults(self, _page_size_faults(self.page_size), left_out)


def _query_faults(query: object) -> tuple[Fault, ...]:
    if not isinstance(query, str):
        return (Fault("query", f"is {query!r}", "a select that gives a text column `account`"),)
    if not query.strip():
        return (Fault("query", "is empty", "a select that gives a text column `account`"),)
    if query.strip().endswith(";"):
        return (Fault("query", "ends with a semicolon", "one select without it, since it is read as a subquery"),)
    return ()


def _page_size_faults(page_size: object) -> tuple[Fault, ...]:
    if isinstance(page_size, int) and not isinstance(page_size, bool) and 1 <= page_size <= MAXIMUM_PAGE_SIZE:
        return ()
    return (Fault("page_size", f"is {page_size!r}", f"a whole number from 1 to {MAXIMUM_PAGE_SIZE}"),)


AccountSource = SqlAccounts | GeneratedAccounts
Handler = Callable[..., Awaitable[Any] | Any]
Definition = Mapping[str, object]
