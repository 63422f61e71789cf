"""What is said of the fleet and of its jobs. Pure."""

from typing import Final, get_args

from schemas.states import AccountState, OccurrenceState
from shared.coordination import Coordination
from trigger.console.api.fields import (
    Schema,
    anything,
    component,
    flag,
    instant,
    many,
    maybe,
    number,
    one_of,
    record,
    text,
    whole,
)

OCCURRENCE: Final = "invoice-run:2026-08-25T02:00Z"
STATE: Final = one_of([one.value for one in OccurrenceState], "succeeded")
ACCOUNT_STATE: Final = one_of([one.value for one in AccountState], "failed")
NEVER: Final = maybe(instant())
COUNT: Final = maybe(whole(4000), example=True)
REASON: Final = maybe(text())

_LAST: Final = record(
    "A job's last occurrence that was decided.",
    occurrence=text(OCCURRENCE),
    state=STATE,
    reason=REASON,
    generation=whole(1),
    scheduled_at=instant(),
    opened_at=maybe(instant(), example=True),
    closed_at=maybe(instant("2026-08-25T02:07:00Z"), example=True),
    total=COUNT,
    succeeded=COUNT,
    failed=maybe(whole(), example=True),
    dead=maybe(whole(), example=True),
    cancelled=maybe(whole(), example=True),
    unsuccessful=maybe(whole(), example=True),
)
_LEADER: Final = record("Who leads a job.", instance=text("3f2a9c01"), epoch=whole(3), until=instant())
_JOB: Final = {
    "job": text("invoice-run"),
    "revision": whole(1),
    "schedule": anything("The schedule, as it was declared."),
    "queue": maybe(text("invoice-run"), example=True),
    "paused_at": NEVER,
    "retired_at": NEVER,
    "standing": maybe(text(), example=False),
    "last": maybe(component("LastOccurrence"), example=True),
    "next_at": maybe(instant("2026-08-26T02:00:00Z"), example=True),
    "late_since": NEVER,
    "start_within": number(300.0),
    "coordination": one_of(get_args(Coordination), "claim"),
    "leader": maybe(component("Leader")),
}
_STATUS_JOB: Final = record("A job, and how it stands.", **_JOB)
_RECORDED_JOB: Final = record(
    "A job, how it stands, and its whole declaration as it is recorded.",
    **_JOB,
    definition=anything("The declaration; durations are seconds."),
)
_RUNNING: Final = record(
    "An occurrence that runs, and how far it is.",
    occurrence=text(OCCURRENCE),
    job=text("invoice-run"),
    state=STATE,
    ending=maybe(text("cancel")),
    generation=whole(1),
    opened_at=maybe(instant(), example=True),
    finish_by=maybe(instant("2026-08-25T06:00:00Z"), example=True),
    sealed=flag(example=True),
    accounts=whole(4000),
    done=whole(1200),
    unsuccessful=whole(3),
    overdue=flag(),
)
_INSTANCE: Final = record(
    "A live process.",
    id=text("3f2a9c01"),
    kind=text("trigger"),
    host=text("host-1"),
    version=text("0.1.0"),
    region=text("eu"),
    started_at=instant(),
    silent_seconds=number(1.2),
)
_DEPTH: Final = record(
    "A queue, and what it holds.", queue=text("matins.work.invoice-run"), messages=whole(0), consumers=whole(2)
)
_UNMENDED: Final = record(
    "An occurrence that ended badly.",
    occurrence=text(OCCURRENCE),
    state=STATE,
    reason=REASON,
    total=COUNT,
    succeeded=maybe(whole(3990), example=True),
    scheduled_at=instant(),
    why=text("10 of 4000 accounts did not succeed"),
)
_STATUS: Final = record(
    "Whether all is well, as `status --json` has it for the last 7 days.",
    well=flag(example=True),
    jobs=many(component("Job")),
    running=many(component("Running")),
    instances=many(component("Instance")),
    queues=maybe(many(component("QueueDepth")), example=True),
    unmended=many(component("Unmended")),
    alerts=many(component("Alert")),
    maintenance=many(component("Maintenance")),
    problems=many(text("no worker is live: nothing is executed")),
    unseen=many(text("the queues were not seen: MATINS_BROKER_URL is not set")),
)
_QUEUE: Final = record(
    "A queue that migrate has made; `messages` and `consumers` are null where the broker has none of that name.",
    queue=text("matins.work.invoice-run"),
    current=flag(example=True),
    arguments=anything("The arguments that it was made with."),
    used_by=many(text("worker 3f2a9c01 on host-1")),
    messages=maybe(whole(), example=True),
    consumers=maybe(whole(2), example=True),
)
_PREVIEWED: Final = record(
    "An instant of the schedule, or wall times that a clock change leaves out.",
    scheduled_at=maybe(instant(), example=True),
    due_at=maybe(instant(), example=True),
    local=text("2026-08-25T04:00:00+02:00"),
    note=text(""),
)

SHAPES: Final[dict[str, Schema]] = {
    "Status": _STATUS,
    "Job": _STATUS_JOB,
    "RecordedJob": _RECORDED_JOB,
    "LastOccurrence": _LAST,
    "Leader": _LEADER,
    "Running": _RUNNING,
    "Instance": _INSTANCE,
    "QueueDepth": _DEPTH,
    "Unmended": _UNMENDED,
    "Queue": _QUEUE,
    "Previewed": _PREVIEWED,
}
