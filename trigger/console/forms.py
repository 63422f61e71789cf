"""Reading what a form sends: of one kind, within bounds of size and time, every field a text."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from trigger.api_request import NotTaken, read_body
from trigger.console.person import NotAdmitted

MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
MOST_FIELDS: Final = 2000
# What tells a form from every other, and from itself sent twice.
MARK: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_STATUS: Final = {"large": (413, "a form has at most 64 KiB"), "slow": (408, "the form came too slowly")}


@dataclass(frozen=True, slots=True)
class Form:
    """What was sent: for each name its values, in their order."""

    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def one(self, name: str) -> str:
        """Give a field's value without blanks around it, '' for none. Raises NotAdmitted for more than one."""
        values = self.values.get(name, ())
        if len(values) > 1:
            raise NotAdmitted(400, f"{name[:40]}: there is one of it in a form")
        return values[0].strip() if values else ""

    def all(self, name: str) -> tuple[str, ...]:
        """Give every value of a name."""
        return self.values.get(name, ())


def new_mark() -> str:
    """Give a form a mark of its own."""
    return secrets.token_hex(16)


async def read_form(request: Request) -> Form:
    """Read a form. Raises NotAdmitted with 413, 415, 408 or 400."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != MEDIA_TYPE:
        raise NotAdmitted(415, f"a form is {MEDIA_TYPE}")
    try:
        body = await read_body(request)
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=MOST_FIELDS,
        )
    except NotTaken as error:
        status, told = _STATUS.get(error.outcome, (400, "the form cannot be read"))
        raise NotAdmitted(status, told) from None
    except ValueError:
        raise NotAdmitted(400, "the form cannot be read") from None
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        if "\x00" in name + value:
            raise NotAdmitted(400, "the form cannot be read")
        values.setdefault(name, []).append(value)
    return Form({name: tuple(given) for name, given in values.items()})
