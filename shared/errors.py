"""The errors that Matins raises: one base, and one class for each situation that a caller can tell apart."""

from collections.abc import Sequence
from inspect import cleandoc


class MatinsError(Exception):
    """Matins cannot go on."""

    # What a process ends with that cannot go on for this reason: 2 for what was asked or set, 1 for all else.
    exit_code = 1

    def __init__(self, message: str | None = None) -> None:
        """Take the message; without one, the class's docstring is the message."""
        super().__init__(message or cleandoc(type(self).__doc__ or type(self).__name__))


class DeclarationError(MatinsError):
    """Something that was declared cannot be used.

    Carries where it stands (`place`), what is wrong with it (`problem`) and, where they can be listed, the values that
    would be right (`valid`). `faults` holds one such error for each thing that is wrong: `(self,)` for a single one.
    """

    def __init__(self, place: str, problem: str, valid: str | None = None) -> None:
        """Compose the one line that an author reads."""
        super().__init__(f"{place}: {problem}" + (f"; valid: {valid}" if valid else ""))
        self.place = place
        self.problem = problem
        self.valid = valid
        self.faults: tuple[DeclarationError, ...] = (self,)

    def __reduce__(self) -> tuple[type["DeclarationError"], tuple[object, ...]]:
        """Survive the way between two processes."""
        return type(self), (self.place, self.problem, self.valid)


class DeclarationErrors(DeclarationError):
    """Several things in one declaration are wrong; `faults` holds them all."""

    def __init__(self, place: str, faults: tuple[DeclarationError, ...]) -> None:
        """Compose the message from all faults, a line each."""
        super().__init__(place, "\n".join(str(fault) for fault in faults))
        self.args = ("\n".join(str(fault) for fault in faults),)
        self.faults = faults

    def __reduce__(self) -> tuple[type["DeclarationErrors"], tuple[object, ...]]:
        """Survive the way between two processes."""
        return type(self), (self.place, self.faults)


def refuse_together(place: str, faults: Sequence[DeclarationError]) -> None:
    """Raise one error for all `faults` found at `place`; return when there is none.

    Raises:
        DeclarationError: the fault itself if it is the only one, else a DeclarationErrors that holds them all.
    """
    every = tuple(single for fault in faults for single in fault.faults)
    if len(every) == 1:
        raise every[0]
    if every:
        raise DeclarationErrors(place, every)
