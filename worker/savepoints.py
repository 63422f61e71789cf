"""The job's code inside our transaction: a savepoint around each call, checked behind it and not hoped for.

The savepoint has a name that the job's code cannot guess: that it can be released proves that the transaction is the
same one, and that it isn't aborted.
"""

import secrets
from collections.abc import Awaitable, Callable

from shared.errors import MatinsError
from shared.postgres import DatabaseError, DriverError, Session, is_over

# One name for the whole process: a server that keeps statistics of its statements keeps them by their text.
SAVEPOINT = f"matins_{secrets.token_hex(8)}"
# What a call has set for the rest of the transaction must charge neither the next account nor our settle.
LEAVE = (
    "set constraints all immediate; set constraints all deferred; set local role none; "
    "set local statement_timeout to default; set local lock_timeout to default; set local search_path to default; "
    f"release savepoint {SAVEPOINT}"
)
UNDO = f"rollback to savepoint {SAVEPOINT}; release savepoint {SAVEPOINT}"


class CommitFailed(MatinsError):
    """The transaction did not commit: of several accounts, none is to blame; each is done again alone."""


class RoleUnavailable(MatinsError):
    """The job's database role cannot be taken: nothing of the job can run, and no account is to blame."""


class Savepoints:
    """One savepoint after another around the job's code; leaving one and entering the next is one round trip."""

    def __init__(self, session: Session, role: str | None) -> None:
        """Begin before the first."""
        self._session = session
        self._enter = f"savepoint {SAVEPOINT}" + (f'; set local role "{role}"' if role else "")
        self._inside = False

    async def run(self, call: Callable[[], Awaitable[None]], *, last: bool) -> BaseException | None:
        """Run `call` inside a savepoint of its own; give its error, with everything that it did undone, or None.

        Unless it is the `last` call, the savepoint of the next is entered; after all, another call may follow. Raises
        RoleUnavailable, CommitFailed when the call ended the transaction, and the driver's error when the session has
        ended.
        """
        if not self._inside:
            await self._enter_first()
        following = "" if last else f"; {self._enter}"
        try:
            await call()
            await self._session.execute(LEAVE + following)
        except (Exception, SystemExit, BaseExceptionGroup) as error:
            if is_over(self._session):
                raise
            await self._undo(following, error)
            return error
        finally:
            self._inside = not last
        return None

    async def _enter_first(self) -> None:
        try:
            await self._session.execute(self._enter)
        except DatabaseError as error:
            if is_over(self._session):
                raise
            raise RoleUnavailable(str(error)) from error

    async def _undo(self, following: str, error: BaseException) -> None:
        try:
            await self._session.execute(UNDO + following)
        except (DatabaseError, DriverError) as lost:
            if is_over(self._session):
                raise
            # The job's code has ended the transaction, and the rows' locks with it; or a statement of its own still
            # runs, and nothing else can be said on the session.
            self._session.terminate()
            problem = f"the job's code ended the transaction, or left a statement running ({type(error).__name__})"
            raise CommitFailed(problem) from lost

    async def finish(self) -> None:
        """Leave the last savepoint, in which nothing was done, and give the role back."""
        if self._inside:
            await self._session.execute(UNDO)
            self._inside = False
