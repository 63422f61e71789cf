"""How the commands of both processes end and speak: an exit code, one line for each error, JSON or text.

Results go to standard output; errors, progress and log lines to standard error, so that `--json` can be piped.
"""

import getpass
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar

import anyio
import orjson
import typer

from shared.declaration import FaultyDeclaration
from shared.errors import MatinsError
from shared.masking import plain
from shared.postgres import DatabaseError, DriverError, InsufficientPrivilege
from shared.settings import FaultySettings, Settings, load_settings

DONE = 0
FAILED = 1
REFUSED = 2
INTERRUPTED = 130
LONGEST_REASON = 500
EXIT_CODES = (
    "Exit codes: 0 done, or all is well; 1 not done, or not well (doctor: warnings); 2 refused for what was asked or "
    "set, or cannot tell (doctor: something is broken)."
)

LOGINS = "docs/privileges.md says which login may do what"

_JSON = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE
_T = TypeVar("_T")


class Refused(MatinsError):
    """What was asked cannot be done: the command ends with exit code 2."""


class NotDone(MatinsError):
    """The command was right and did not reach its goal: it ends with exit code 1."""


@contextmanager
def told(program: str) -> Iterator[None]:
    """Run a command's body; what it cannot do is said on standard error in `program`'s name, and sets the exit code."""
    try:
        yield
    except FaultyDeclaration as error:
        for fault in error.faults:
            say(program, str(fault))
        raise typer.Exit(REFUSED) from None
    except MatinsError as error:
        end(program, str(error), FAILED if isinstance(error, NotDone) else REFUSED)
    except BrokenPipeError:
        # Whoever read the output has seen enough; closing it here keeps the interpreter from complaining at its end.
        sys.stderr.close()
        raise typer.Exit(DONE) from None
    except InsufficientPrivilege as error:
        end(program, f"the login of MATINS_DATABASE_URL may not do this ({error}): {LOGINS}", REFUSED)
    except (DatabaseError, DriverError) as error:
        end(program, f"PostgreSQL: {type(error).__name__}: {error}", FAILED)
    except (OSError, TimeoutError) as error:
        end(program, f"{type(error).__name__}: {error}", FAILED)
    except KeyboardInterrupt:
        end(program, "interrupted", INTERRUPTED)


def end(program: str, problem: str, code: int) -> NoReturn:
    """End the command with a line for each line of the problem."""
    for line in problem.split("\n"):
        say(program, line)
    raise typer.Exit(code)


def say(program: str, text: str) -> None:
    """Write to standard error in `program`'s name, without secrets and control characters.

    Only the first line bears the name: what follows it is a block to paste.
    """
    sys.stdout.flush()
    typer.echo(f"{program}: {plain(text, 64 * 1024)}", err=True)


def run(work: Callable[[], Awaitable[_T]]) -> _T:
    """Run a command's work; whatever it or a job's code prints or logs goes to standard error."""
    from shared import logs  # noqa: PLC0415 - a command loads only what it uses

    logs.configure("warning", "text", service="matins", instance="")
    with redirect_stdout(sys.stderr):
        return anyio.run(work)


def settings_for(*need: str) -> Settings:
    """Read the settings, of which a command uses `need`. Raises FaultySettings."""
    return load_settings(need=frozenset(need))


def given(settings: Settings, name: str) -> str:
    """Give a secret that a command can do without; '' when it isn't set. Raises FaultySettings when it is faulty."""
    try:
        return settings.secret(name)
    except FaultySettings as error:
        if "is not set" in str(error):
            return ""
        raise


def print_json(value: Any) -> None:
    """Print a value as indented JSON, instants in UTC."""
    sys.stdout.write(orjson.dumps(value, option=_JSON).decode())


def operator() -> str:
    """Name the person at this command line, as the system knows them; 'unknown' if it doesn't."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def checked_reason(text: str) -> str:
    """Give a reason that can be kept. Raises Refused when it is empty or too long."""
    reason = plain(text.strip(), 10 * LONGEST_REASON).replace("\n", " ")
    if not reason or len(reason) > LONGEST_REASON:
        problem = f"--reason: say in 1 to {LONGEST_REASON} characters why; it is kept for good"
        raise Refused(problem)
    return reason


def read_instant(option: str, text: str) -> datetime:
    """Read an instant with a zone, such as 2026-08-25T02:00Z. Raises Refused, naming the option."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        problem = f"{option}: {text[:80]!r} is not an instant; write 2026-08-25T02:00Z"
        raise Refused(problem) from None
    if instant.tzinfo is None:
        problem = f"{option}: {text[:80]!r} names no zone; write 2026-08-25T02:00Z, or +02:00 at its end"
        raise Refused(problem)
    try:
        instant.astimezone(UTC)
    except OverflowError:
        problem = f"{option}: {text[:80]!r} lies outside the years 1 to 9999 in UTC"
        raise Refused(problem) from None
    return instant


def confirm(question: str, *, yes: bool) -> None:
    """Ask a person before something that cannot be taken back. Raises Refused without a yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        problem = f"{question} Nobody is here to answer: add --yes"
        raise Refused(problem)
    if not typer.confirm(question, err=True):
        problem = "not confirmed; nothing was done"
        raise Refused(problem)
