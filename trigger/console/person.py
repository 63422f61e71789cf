"""Who asks something of the console, and may they act."""

from dataclasses import dataclass
from typing import Final, Literal

from shared.console_access import Role
from shared.errors import MatinsError

Means = Literal["oidc", "proxy", "token"]
LONGEST_NAME: Final = 200
LONGEST_CLAIM: Final = 200
MOST_CLAIMS: Final = 500
# The statuses of HTTP: nobody is known, somebody may not, and nobody can tell.
NOBODY, MAY_NOT, CANNOT_TELL = 401, 403, 503
# How the audit trail names a program, and so what no person is called.
PROGRAM_PREFIX: Final = "token:"


class NotAdmitted(MatinsError):
    """Who asks is not let in, or not so far: `status` is 401 for nobody, 403 for who may not, and others of HTTP."""

    def __init__(self, status: int, told: str) -> None:
        """Take the status, and what may be told of it."""
        super().__init__(told)
        self.status = status


@dataclass(frozen=True, slots=True)
class Person:
    """A person, or a program with a token; `name` is the one in the audit trail."""

    name: str
    role: Role
    means: Means

    @property
    def may_operate(self) -> bool:
        """Whether they may act, and not only look."""
        return self.role == "operate"


@dataclass(frozen=True, slots=True)
class Identified:
    """Somebody as a provider or a proxy has named them; `claims` decide about the role."""

    name: str
    means: Means
    issuer: str = ""
    subject: str = ""
    claims: tuple[str, ...] = ()


def is_name(text: str) -> bool:
    """Tell whether somebody can be called so: nothing in it that is not seen, or that is taken for another's name."""
    fits = 1 <= len(text) <= LONGEST_NAME and text.isprintable() and text == text.strip()
    return fits and not text.lower().startswith(PROGRAM_PREFIX)
