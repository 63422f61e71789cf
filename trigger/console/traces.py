"""Where a trace is to be seen, from the context that a row keeps of it. Pure."""

import re
from dataclasses import dataclass

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace: its id, and where it is to be seen, '' where nobody has said."""

    id: str
    href: str


def trace_of(context: str | None, trace_url: str) -> Trace | None:
    """Read a W3C `traceparent`, None for anything else; `trace_url` has {trace_id} in it, or is ''."""
    found = _TRACEPARENT.fullmatch(context or "")
    if found is None or not int(found[1], 16):
        return None
    return Trace(found[1], trace_url.replace("{trace_id}", found[1]))
