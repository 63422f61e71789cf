"""A step of the work as a span: opened, made current, described, ended.

A context travels as text, on a row or in a message, and is read with suspicion. Where nothing is exported, a step costs
next to nothing.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from contextvars import Token
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from types import TracebackType
from typing import TypedDict, Unpack

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Link, SpanContext, SpanKind, StatusCode, TraceFlags, Tracer
from opentelemetry.util.types import AttributeValue

from shared import clock
from shared.masking import plain

STEP = "matins.step"
OUTCOME = "matins.outcome"

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_LINKS_AT_MOST = 64
_DESCRIPTION_AT_MOST = 512


class Facts(TypedDict, total=False):
    """What a span may say of its step; each becomes the attribute `matins.<name>`."""

    accounts: int
    account: str
    attempt: int
    delay: float
    epoch: int
    failed: int
    generation: int
    isolated: bool
    outcome: str
    pages: int
    reason: str
    region: str
    scheduled_at: datetime


class Span:
    """One step as it runs; without anything to record to, it keeps quiet."""

    __slots__ = ("_recorded", "error_class")

    def __init__(self, recorded: trace.Span | None = None) -> None:
        self._recorded = recorded
        self.error_class = ""

    @property
    def context(self) -> str:
        """The W3C `traceparent`, to be stored or sent along; empty where nothing is recorded."""
        if self._recorded is None:
            return ""
        found = self._recorded.get_span_context()
        return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags & TraceFlags.SAMPLED:02x}"

    def set(self, **facts: Unpack[Facts]) -> None:
        """Add facts that are known only now."""
        if self._recorded is not None:
            self._recorded.set_attributes(_described(facts))

    def fail(self, error_class: str, message: str) -> None:
        """Say that the step failed, and why; the message is masked and cut."""
        self.error_class = error_class
        if self._recorded is not None:
            self._recorded.set_attribute("error.type", error_class)
            self._recorded.set_status(StatusCode.ERROR, plain(message, _DESCRIPTION_AT_MOST))

    def end(self, error: BaseException | None) -> None:
        """End the step, which `error` has left if given."""
        if isinstance(error, Exception) and not self.error_class:
            self.fail(type(error).__name__, str(error))
        if self._recorded is not None:
            if error is not None and not isinstance(error, Exception):
                self._recorded.set_attribute("matins.interrupted", True)  # noqa: FBT003 - the name says it
            self._recorded.end()


@dataclass
class Tracing:
    """Where steps are recorded, if anywhere, and whether their durations are measured."""

    tracer: Tracer | None = None
    measured: bool = False


tracing = Tracing()


@dataclass(slots=True)
class Step(AbstractContextManager[Span]):
    """Opens a span, makes it the current one, and ends it."""

    step: str
    name: str
    facts: Facts
    described: Mapping[str, AttributeValue]
    kind: SpanKind = SpanKind.INTERNAL
    parent: str | None = None
    links: Iterable[str | None] = ()
    measure: Callable[[float, str], None] | None = None
    span: Span = field(default_factory=Span)
    token: Token[Context] | None = None
    began: float = 0.0

    def __enter__(self) -> Span:
        if tracing.measured and self.measure:
            self.began = clock.monotonic()
        if tracing.tracer is not None:
            recorded = tracing.tracer.start_span(
                self.name,
                None if self.parent is None else _context_of(self.parent),
                self.kind,
                {STEP: self.step, **self.described, **_described(self.facts)},
                _links_to(self.links),
            )
            self.span = Span(recorded)
            self.token = attach(trace.set_span_in_context(recorded))
        return self.span

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.token is not None:
            detach(self.token)
        self.span.end(error)
        if self.began and self.measure:
            self.measure(clock.monotonic() - self.began, self.span.error_class)


def current() -> tuple[str, str] | None:
    """The ids of the current trace and of its current span in hexadecimal, or None."""
    found = trace.get_current_span().get_span_context()
    return (f"{found.trace_id:032x}", f"{found.span_id:016x}") if found.is_valid else None


def _described(facts: Facts) -> dict[str, AttributeValue]:
    described: dict[str, AttributeValue] = {}
    for key, value in facts.items():
        match value:
            case bool() | int() | float():
                described[f"matins.{key}"] = value
            case datetime():
                described[f"matins.{key}"] = value.isoformat().replace("+00:00", "Z")
            case _:
                described[f"matins.{key}"] = plain(str(value))
    return described


def _read(text: str | None) -> SpanContext | None:
    """Read a context; it comes from a message or a row, so anything else than a `traceparent` is no context."""
    found = _TRACEPARENT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return context if context.is_valid else None


def _context_of(parent: str) -> Context:
    found = _read(parent)
    return trace.set_span_in_context(trace.NonRecordingSpan(found), Context()) if found else Context()


def _links_to(texts: Iterable[str | None]) -> list[Link]:
    found = (context for text in dict.fromkeys(texts) if (context := _read(text)))
    return [Link(context) for context in islice(found, _LINKS_AT_MOST)]
