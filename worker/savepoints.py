"""The job's code inside our transaction: a savepoint around each call, checked behind it and not hoped for.

The savepoint has a name that the job's code cannot guess: that it can be released proves that the transaction is the
same one, and that it isn't aborted.
"""

import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from shared.errors import MatinsError
from shared.postgres import CONFLICTS, DatabaseError, DriverError, Session, StatementsGone, is_over

# One name for the whole process: a server that keeps statistics of its statements keeps them by their text.
SAVEPOINT = f"matins_{secrets.token_hex(8)}"
# What a call has set for the rest of the transaction must charge neither the next account nor our settle.
CHECK = "set constraints all immediate; set constraints all deferred; set local role none; "
FOR_THE_NEXT = (
    "set local statement_timeout to default; set local lock_timeout to default; set local search_path to default; "
)
FOR_THE_SETTLE = "reset all; "
RELEASE = f"release savepoint {SAVEPOINT}"
UNDO = f"rollback to savepoint {SAVEPOINT}; release savepoint {SAVEPOINT}"


def silent_at_most(silence: timedelta) -> str:
    """Write the statement by which a session that is frozen in its transaction ends by itself."""
    return f"set local idle_in_transaction_session_timeout = {round(silence.total_seconds() * 1000)}"


class CommitFailed(MatinsError):
    """The transaction did not commit: of several accounts, none is to blame; each is done again alone."""


class RoleUnavailable(MatinsError):
    """The job's database role cannot be taken: nothing of the job can run, and no account is to blame."""


@contextmanager
def behind_foreign_code(session: Session) -> Iterator[None]:
    """Have statements prepared by the driver on a session on which a job's code runs. Raises CommitFailed.

    Code that throws them away, with `deallocate all`, is found out only by the next one.
    """
    try:
        yield
    except StatementsGone as gone:
        session.terminate()
        raise CommitFailed("the job's code has thrown away the session's prepared statements") from gone


class Savepoints:
    """One savepoint after another around the job's code; leaving one and entering the next is one round trip."""

    def __init__(
        self, session: Session, role: str | None, silence: timedelta, *, charge_conflicts: bool = True
    ) -> None:
        """Begin before the first; unless `charge_conflicts`, an error of CONFLICTS is nobody's failure.

        `silence` is how long the server lets the session be silent in the transaction.
        """
        self._session = session
        self._charge_conflicts = charge_conflicts
        self._silence = f"{silent_at_most(silence)}; "
        self._enter = f"savepoint {SAVEPOINT}" + (f'; set local role "{role}"' if role else "")
        self._inside = False

    async def run(self, call: Callable[[], Awaitable[None]], *, last: bool) -> BaseException | None:
        """Run `call` inside a savepoint of its own; give its error, with everything that it did undone, or None.

        Unless it is the `last` call, the savepoint of the next is entered; after all, another call may follow. Raises
        RoleUnavailable, CommitFailed when the call ended the transaction, StatementsGone, an error of CONFLICTS, and
        the driver's error when the session has ended.
        """
        if not self._inside:
            await self._enter_first()
        following = "" if last else f"; {self._enter}"
        leave = CHECK + (FOR_THE_SETTLE if last else FOR_THE_NEXT) + self._silence + RELEASE
        try:
            await call()
            await self._session.execute(leave + following)
        except (Exception, SystemExit, BaseExceptionGroup) as error:
            if is_over(self._session) or self._is_nobodys(error):
                raise
            await self._undo(following, error)
            return error
        finally:
            self._inside = not last
        return None

    def _is_nobodys(self, error: BaseException) -> bool:
        """Tell whether an error may be the doing of another than who met it."""
        return isinstance(error, StatementsGone) or (isinstance(error, CONFLICTS) and not self._charge_conflicts)

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
            await self._session.execute(f"{UNDO}; {FOR_THE_SETTLE}{self._silence}")
            self._inside = False
