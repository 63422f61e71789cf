"""What can be done on a page: its path, its form, and the function of the command line that does it."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from urllib.parse import quote

from shared.postgres import Session
from shared.terminal import Refused, read_instant
from trigger.console.forms import Form
from trigger.console.place import Place
from trigger.ends import Until, read_lasting
from trigger.operate import Order

FieldKind = Literal["text", "lines", "one of", "yes", "number"]
_OPTION = re.compile(r"--([a-z][a-z-]+)")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form; `name` is that of the command line's option, `valid` the values and labels of `one of`."""

    name: str
    label: str
    kind: FieldKind = "text"
    valid: tuple[tuple[str, str], ...] = ()
    hint: str = ""
    usual: str = ""
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Doing:
    """One act that somebody has ordered. `subject` is whatever its path names."""

    place: Place
    session: Session
    subject: str
    order: Order
    form: Form


@dataclass(frozen=True, slots=True)
class Asking:
    """What somebody is asked before something that cannot be taken back; `rows` show what would be done."""

    question: str
    headings: tuple[str, ...] = ()
    rows: Sequence[Sequence[str]] = ()
    remarks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Act:
    """One act. `perform` does it and gives what is told of it, a line each; it raises Refused and NotDone.

    With `ask` it is done once somebody has said yes to what that gives, if it gives anything. `what` stands before a
    subject that is no name.
    """

    name: str
    path: str
    label: str
    explained: str
    perform: Callable[[Doing], Awaitable[Sequence[str]]]
    fields: tuple[Field, ...] = ()
    ask: Callable[[Doing], Awaitable[Asking | None]] | None = None
    dangerous: bool = False
    what: str = ""

    def path_for(self, subject: object) -> str:
        """Give where its form is sent."""
        return re.sub(r"\{\w+\}", lambda _: quote(str(subject), safe=":@+"), self.path)

    def title_for(self, subject: str) -> str:
        """Give the heading of a page about nothing but it."""
        named = f"{self.what} {subject}".strip()
        return f"{self.label}: {named}" if named else self.label

    def in_words(self, told: str) -> str:
        """Say what a function says of its options by the labels of the form."""
        labels: Mapping[str, str] = {one.name: one.label for one in (*self.fields, REASON)}
        return _OPTION.sub(lambda found: f"“{labels[found[1]]}”" if found[1] in labels else found[0], told)


REASON: Final = Field("reason", "Why", hint="kept for good in the audit trail", needed=True)


def instant_given(form: Form, given: Field) -> datetime | None:
    """Read an instant, None for none. Raises Refused."""
    text = form.one(given.name)
    return read_instant(f"--{given.name}", text) if text else None


def end_given(form: Form) -> Until:
    """Read when something ends: at an instant, or after a time. Raises Refused for neither, or both."""
    until, lasting = form.one("until"), form.one("for")
    if bool(until) == bool(lasting):
        raise Refused("say when it ends: with --for, as 8h, or with --until" + (", not with both" if until else ""))
    return read_instant("--until", until) if until else read_lasting("--for", lasting)


def choice_given(form: Form, given: Field) -> str:
    """Read one of a field's values, by default its usual one. Raises Refused."""
    text = form.one(given.name) or given.usual
    if text not in dict(given.valid):
        raise Refused(f"--{given.name}: {text[:40]!r} is unknown; valid are {', '.join(dict(given.valid))}")
    return text


def yes_given(form: Form, name: str) -> bool:
    """Read whether a box is ticked."""
    return form.one(name) == "yes"


FOR: Final = Field("for", "For", hint="30m, 8h or 2d")
UNTIL: Final = Field("until", "Until", hint="or an instant, as 2026-08-25T06:00Z")
SINCE: Final = Field("since", "From", hint="an instant; empty: now")
MAINTENANCE_FIELDS: Final = (SINCE, FOR, UNTIL)
