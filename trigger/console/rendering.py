"""Making HTML of what was read. All text is escaped, and shown as text whatever it holds."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from schemas.occurrence import format_instant
from shared.durations import show_seconds
from shared.masking import plain
from shared.terminal_tables import Times
from shared.version import VERSION
from trigger.console.acts import REASON
from trigger.console.cells import HOLES, LETTERS
from trigger.console.forms import new_mark
from trigger.console.json_shown import shown
from trigger.console.offers import OFFERS
from trigger.console.runbook import spans

LONGEST_SAID: Final = 500
NOTHING: Final = "-"
_LONGEST_ESCAPE: Final = 6


def said(value: object, limit: int = LONGEST_SAID) -> Markup:
    """Show somebody's text: escaped, without control characters, in a direction of its own, cut with a word."""
    return Markup("<bdi>{}</bdi>").format(plain(str(value), limit))


def plainly(value: object, limit: int = LONGEST_SAID) -> str:
    """Show somebody's text where no element can stand, as in a title: without control characters, cut with a word."""
    return plain(str(value), limit)


def said_part(text: str, length: int, limit: int) -> Markup:
    """Show the beginning of somebody's text that has `length` characters, of which not all were read."""
    if length <= limit:
        return said(text, limit)
    return Markup("<bdi>{}…[cut from {} characters]</bdi>").format(plain(text[:limit], _LONGEST_ESCAPE * limit), length)


def instant(value: datetime | None) -> Markup | str:
    """Show an instant in UTC, to the second; the reader's own zone is the script's to add."""
    if value is None:
        return NOTHING
    utc = value.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(f"{utc:%Y-%m-%dT%H:%M:%SZ}", f"{utc:%Y-%m-%d %H:%M:%S}Z")


def minute(value: datetime | None) -> Markup | str:
    """Show an instant in UTC, to the minute where its seconds are zero."""
    if value is None:
        return NOTHING
    utc = value.astimezone(UTC)
    written = format_instant(utc).replace("T", " ")
    return Markup('<time datetime="{}">{}</time>').format(f"{utc:%Y-%m-%dT%H:%M:%SZ}", written)


def in_zone(value: datetime | None, zone: str) -> str:
    """Write an instant as the clocks of a zone show it, with the zone's abbreviation."""
    return NOTHING if value is None else Times(zone).local(value)


def number(value: float | None) -> str:
    """Write a number with thin spaces between its thousands; a dash for none."""
    return NOTHING if value is None else f"{value:,}".replace(",", "\u202f")


def took(seconds: float | None) -> str:
    """Write a duration; a dash for none."""
    return NOTHING if seconds is None else show_seconds(seconds)


def took_exactly(seconds: float | None) -> str:
    """Write a duration with three figures, as `show` prints it; a dash for none."""
    return NOTHING if seconds is None else f"{seconds:.3g}s"


def rate(per_second: float) -> str:
    """Write a rate with one decimal."""
    return f"{per_second:.1f}"


def moment(written: str | None) -> datetime | None:
    """Read an instant that JSON has as text."""
    return None if written is None else datetime.fromisoformat(written)


@cache
def asset(name: str) -> str:
    """Give the path of a static file, with a mark of its content, so that it may be kept for good."""
    content = resources.files(__package__).joinpath("static", name).read_bytes()
    return f"/static/{name}?{sha256(content).hexdigest()[:12]}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("trigger.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "said": said,
        "spans": spans,
        "plainly": plainly,
        "said_part": said_part,
        "instant": instant,
        "minute": minute,
        "in_zone": in_zone,
        "number": number,
        "took": took,
        "shown": shown,
        "took_exactly": took_exactly,
        "rate": rate,
        "moment": moment,
    }
    environment.globals |= {"asset": asset, "version": VERSION, "letters": LETTERS, "holes": HOLES}
    environment.globals |= {"new_mark": new_mark, "reason_field": REASON, **OFFERS}
    return environment


def render(template: str, values: Mapping[str, Any]) -> str:
    """Give a page's HTML. Raises jinja2.UndefinedError for a value that the template needs and is not there."""
    return _environment().get_template(template).render(values)
