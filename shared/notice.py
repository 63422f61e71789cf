"""What a person is told of an alert: read from the outbox, bounded, and safe to show. Pure.

Subjects and sentences carry what other people wrote. Here they lose their control characters and their excess; what a
channel's own format gives a meaning to is dealt with where that format is written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from shared.masking import plain, plain_value

LONGEST_TOLD = 2000
LONGEST_LINE = 300
Event = Literal["opened", "repeated", "closed", "test"]
_WORDS = {"opened": "", "repeated": "still: ", "closed": "over: ", "test": "test: "}


@dataclass(frozen=True, slots=True)
class Notice:
    """One message. `id` is the same however often it is sent; `opened_at` and `at` are the database's times, in UTC.

    `notices` is how often this alert has been told, this time included.
    """

    id: str
    event: Event
    alert: int | None
    environment: str
    kind: str
    severity: str
    subject: str
    job: str | None
    told: str
    advice: str
    more: str
    runbook: str
    opened_at: datetime
    at: datetime
    notices: int
    close_reason: str
    detail: Mapping[str, Any]

    @property
    def over(self) -> bool:
        """Whether it says that an alert is over."""
        return self.event == "closed"

    @property
    def headline(self) -> str:
        """One line: where, how bad, what, and about what."""
        return f"[{self.environment}] {self.severity}: {_WORDS[self.event]}{self.kind} {self.subject}"

    def lines(self) -> Iterator[tuple[str, str]]:
        """Give what there is to say, each with its name, in the order in which somebody who was woken wants it."""
        yield "what", self.told
        if self.over:
            yield "over", f"since {_written(self.at)}: {self.close_reason}"
        else:
            yield "do", self.advice
        yield "more", self.more
        yield "runbook", self.runbook
        yield "since", _written(self.opened_at)
        if self.notices > 1:
            yield "told", f"{self.notices} times"
        yield "id", self.id


def read_notice(identity: str, event: str, body: Mapping[str, Any]) -> Notice:
    """Read what the watch has written into the outbox; what another release leaves out is empty.

    Raises ValueError for instants that are none.
    """
    opened_at = _instant(body["opened_at"])
    return Notice(
        id=identity,
        event=cast("Event", event),
        alert=body.get("alert"),
        environment=_line(body.get("environment")),
        kind=_line(body.get("kind")),
        severity=_line(body.get("severity")) or "critical",
        subject=_line(body.get("subject")),
        job=None if body.get("job") is None else _line(body["job"]),
        told=plain(str(body.get("told") or ""), LONGEST_TOLD),
        advice=_line(body.get("advice")),
        more=_line(body.get("more")),
        runbook=_line(body.get("runbook")),
        opened_at=opened_at,
        at=_instant(body["at"]) if body.get("at") else opened_at,
        notices=int(body.get("notices") or 1),
        close_reason=_line(body.get("close_reason")),
        detail=cast("Mapping[str, Any]", plain_value(body.get("detail") or {})),
    )


def trial_notice(identity: str, environment: str, at: datetime) -> Notice:
    """Give the message of `notify --test`."""
    return Notice(
        id=identity,
        event="test",
        alert=None,
        environment=environment,
        kind="test",
        severity="warning",
        subject="notify",
        job=None,
        told="This is a test: somebody wants to know whether messages arrive here. Nothing is out of order.",
        advice="Nothing is to be done.",
        more="python -m trigger notify",
        runbook="docs/notifications.md",
        opened_at=at,
        at=at,
        notices=1,
        close_reason="",
        detail={},
    )


def _line(value: object) -> str:
    return plain("" if value is None else str(value), LONGEST_LINE).replace("\n", " ").replace("\t", " ")


def _instant(value: str) -> datetime:
    instant = datetime.fromisoformat(value)
    if instant.tzinfo is None:
        raise ValueError("an instant without a zone")
    return instant.astimezone(UTC)


def _written(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%S}Z"
