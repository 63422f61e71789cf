"""The runbook's entry of an alert, for the page that shows the alert: read from the runbook itself.

Its commands name the alert's own job and occurrence instead of the example's, so that they can be copied at 02:00. What
it looks like is the page's: this gives text, of which nothing is markup.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from schemas.alert import KINDS
from schemas.occurrence import format_instant, parse_identity

PATH: Final = Path(__file__).parents[2] / "docs" / "runbook.md"
# Whom the runbook's own examples are about.
JOB: Final = "invoice-run"
INSTANT: Final = "2026-08-25T02:00Z"

_ITEM = re.compile(r"^- \*\*(\w+)\*\*: ", re.MULTILINE)
_BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```\n?", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*|\[([^\]]+)\]\([^)]*\)")
_REASON = re.compile(r'--reason "[^"]*"')


@dataclass(frozen=True, slots=True)
class Span:
    """Some text of a sentence."""

    form: Literal["plain", "code", "strong"]
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """Sentences, or with `code` commands a line each."""

    spans: tuple[Span, ...]
    code: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One of the things that an entry says: Symptom, Look, Do, Costs, Wake."""

    label: str
    blocks: tuple[Block, ...]


def entry_of(kind: str, job: str | None, subject: str) -> tuple[Item, ...]:
    """Give the entry of a kind of alerts, about a job and a subject; nothing where there is no runbook beside."""
    text = entries().get(kind, "")
    labels = list(_ITEM.finditer(text))
    if not labels:
        return ()
    ends = [one.start() for one in labels[1:]] + [len(text)]
    return tuple(
        Item(label[1], tuple(_blocks(text[label.end() : end], kind, job, subject)))
        for label, end in zip(labels, ends, strict=True)
    )


@cache
def entries() -> Mapping[str, str]:
    """Read the entries of all kinds of alerts."""
    if not PATH.exists():
        return {}
    alerts = PATH.read_text(encoding="utf-8").partition("\n## Alerts\n")[2].partition("\n## ")[0]
    _, *others = re.split(r"^### (.+)$", alerts, flags=re.MULTILINE)
    return dict(zip(others[::2], others[1::2], strict=True))


def _blocks(text: str, kind: str, job: str | None, subject: str) -> Iterator[Block]:
    parts = _BLOCK.split(text)
    for place, part in enumerate(parts):
        if place % 2:
            lines = (line.strip() for line in part.splitlines())
            yield Block((), "\n".join(_about(line, kind, job, subject) for line in lines))
        elif said := " ".join(part.split()):
            yield Block(tuple(spans(said)))


def spans(text: str) -> Iterator[Span]:
    """Read a sentence: what stands between backticks is code; of links the text stays."""
    end = 0
    for found in _SPAN.finditer(text):
        if found.start() > end:
            yield Span("plain", text[end : found.start()])
        code, strong, linked = found.groups()
        if code:
            yield Span("code", code)
        elif strong:
            yield Span("strong", strong)
        else:
            yield Span("plain", linked.replace("`", ""))
        end = found.end()
    if end < len(text):
        yield Span("plain", text[end:])


def _about(command: str, kind: str, job: str | None, subject: str) -> str:
    """Write a command for the alert's own subject; nobody's reason is put into somebody's mouth."""
    told = _REASON.sub('--reason "…"', command)
    if kind in KINDS and KINDS[kind].subject == "occurrence":
        try:
            identity = parse_identity(subject)
        except ValueError:
            return told
        told = told.replace(f"{JOB}:{INSTANT}", "\0").replace(INSTANT, format_instant(identity.scheduled_at))
        return told.replace(JOB, identity.job).replace("\0", subject)
    return told.replace(JOB, job) if job else told
