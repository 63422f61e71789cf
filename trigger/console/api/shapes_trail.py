"""What is said of alerts, of the audit trail, and of what people have ordered. Pure."""

from typing import Final, get_args

from shared.console_access import Role
from trigger.alert_standing import Stand
from trigger.backfill_choice import Mode
from trigger.console.api.fields import (
    Schema,
    anything,
    component,
    flag,
    instant,
    many,
    maybe,
    one_of,
    record,
    text,
    whole,
)
from trigger.console.api.shapes_fleet import NEVER, OCCURRENCE, REASON
from trigger.console.person import Means

_ALERT: Final = {
    "alert": whole(7),
    "name": text(f"failed:{OCCURRENCE}"),
    "severity": one_of(("critical", "warning"), "critical"),
    "kind": text("failed"),
    "subject": text(OCCURRENCE),
    "job": maybe(text("invoice-run"), example=True),
    "told": text("it failed: 10 of 10 accounts did not succeed"),
    "detail": anything("The same for machines."),
    "opened_at": instant(),
    "opened_by": text("3f2a9c01"),
    "notices": whole(1),
    "next_notice_at": maybe(instant("2026-08-25T06:00:00Z"), example=True),
    "acknowledged_at": NEVER,
    "acknowledged_by": maybe(text("ann")),
    "acknowledge_reason": REASON,
    "silenced_until": NEVER,
    "silenced_by": maybe(text("ann")),
    "silence_reason": REASON,
    "closed_at": NEVER,
    "close_reason": REASON,
    "standing": one_of(get_args(Stand), "told"),
    "told_standing": text("told, again 2026-08-25T06:00Z"),
    "maintained_until": NEVER,
    "advice": text("Read its report with `show`, mend the cause, `rerun` it."),
    "more": text(f"show {OCCURRENCE}"),
    "runbook": text("docs/runbook.md#failed"),
}
_NOTICE: Final = record(
    "What was to be told of an alert, and what became of it on a channel.",
    id=whole(12),
    event=text("opened"),
    created_at=instant(),
    channel=maybe(text("pager"), example=True),
    state=maybe(text("delivered"), example=True),
    attempts=maybe(whole(1), example=True),
    ended_at=maybe(instant(), example=True),
    error=maybe(text("the channel does not answer")),
)
_ENTRY: Final = record(
    "An entry of the audit trail; `position` is its place in the chain, null before it is sealed.",
    id=whole(41),
    at=instant(),
    kind=text("rerun"),
    job=maybe(text("invoice-run"), example=True),
    instance=maybe(text("3f2a9c01"), example=True),
    version=maybe(text("0.1.0"), example=True),
    actor=maybe(text("ann"), example=True),
    actor_kind=maybe(one_of(("operator", "caller"), "operator"), example=True),
    reason=maybe(text("the provider is back"), example=True),
    detail=anything("What else is recorded of it."),
    position=maybe(whole(40), example=True),
    occurrence=maybe(text(OCCURRENCE), example=True),
    before={"description": "What was before, any JSON.", "examples": [None]},
    after={"description": "What is since, any JSON.", "examples": [None]},
)
_BACKFILL: Final = record(
    "A backfill, and how far it is.",
    id=whole(3),
    job=text("invoice-run"),
    since=instant("2026-08-20T02:00:00Z"),
    until=instant("2026-08-24T02:00:00Z"),
    mode=one_of(get_args(Mode), "missing"),
    reverse=flag(),
    max_active=whole(1),
    state=one_of(("active", "done", "cancelled"), "done"),
    actor=text("ann"),
    reason=text("the provider was away"),
    created_at=instant(),
    ended_at=maybe(instant("2026-08-25T03:00:00Z"), example=True),
    ended_by=maybe(text("ann")),
    end_reason=REASON,
    total=whole(5),
    waiting=whole(0),
    running=whole(0),
    succeeded=whole(5),
    partial=whole(0),
    failed=whole(0),
    cancelled=whole(0),
    left_out=whole(0),
)
_MAINTENANCE: Final = record(
    "A planned maintenance; `job` is null for one of all jobs.",
    id=whole(2),
    job=maybe(text("invoice-run"), example=True),
    since=instant(),
    until=instant("2026-08-25T04:00:00Z"),
    actor=text("ann"),
    reason=text("the provider moves"),
    created_at=instant("2026-08-24T12:00:00Z"),
    state=one_of(("in force", "to come", "over"), "in force"),
)

_PERSON: Final = record(
    "Who asks; `csrf` is a word of their session, '' for who has none.",
    name=text("ann@example.com"),
    role=one_of(get_args(Role), "operate"),
    means=one_of(get_args(Means), "oidc"),
    csrf=text("q0f3…"),
)

SHAPES: Final[dict[str, Schema]] = {
    "Person": _PERSON,
    "Alert": record("An alert, and how it stands.", **_ALERT),
    "Alerts": record("Alerts, and how many there are in all.", found=whole(1), alerts=many(component("Alert"))),
    "ShownAlert": record(
        "An alert, what was done about it, and what was told of it.",
        **_ALERT,
        events=many(component("Event")),
        history=many(component("Notice")),
    ),
    "Notice": _NOTICE,
    "AuditEntry": _ENTRY,
    "Backfill": _BACKFILL,
    "Maintenance": _MAINTENANCE,
}
