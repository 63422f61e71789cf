"""What can be done with a job: whether it may fire, and what of it is run beside the schedule."""

from collections.abc import Sequence
from typing import Any, Final, cast

from schemas.occurrence import format_instant
from shared.terminal import Refused
from trigger.backfill import Backfill, Range, backfill, cancel_backfill
from trigger.backfill_choice import MEANT, MOST_ACTIVE, Mode
from trigger.console.acts import (
    MAINTENANCE_FIELDS,
    Act,
    Asking,
    Doing,
    Field,
    choice_given,
    end_given,
    instant_given,
    yes_given,
)
from trigger.firing import fired, fired_ad_hoc
from trigger.maintenance import add_maintenance, end_maintenance, told_plan
from trigger.pauses import FATES, Meanwhile, pause, resume, retire, told_change, unretire

LARGEST_NUMBER: Final = 2**63 - 1
_MEANWHILE = Field("meanwhile", "What falls due meanwhile", "one of", tuple(FATES.items()), usual="skip")
_WHAT = Field(
    "what",
    "What",
    "one of",
    (
        ("due", "the latest instant that is due"),
        ("planned", "the planned instant below"),
        ("ad-hoc", "once more, beside the schedule, as an occurrence of its own"),
    ),
    usual="due",
)
_AT = Field("at", "Planned instant", hint="as 2026-08-25T02:00Z")
_WINDOW = (
    Field("since", "Beside the schedule: its window begins", hint="empty: where the last one ended"),
    Field("until", "and ends", hint="empty: now"),
)
_FROM = Field("from", "From", hint="the earliest instant, as 2026-08-20T02:00Z", needed=True)
_TO = Field("until", "Until", hint="the latest, included; not in the future", needed=True)
_MODE = Field(
    "mode",
    "Which",
    "one of",
    (
        ("missing", "what never ran"),
        ("failed", "what ended partial, failed or cancelled"),
        ("all", "both; what has succeeded is never run again"),
    ),
    usual="missing",
)
_REVERSE = Field("reverse", "the latest first", "yes")
_MOST = Field("max-active", "At once at most", "number", hint="more than 1 only with overlap=allow", usual="1")


async def _pause(doing: Doing) -> Sequence[str]:
    meanwhile = cast("Meanwhile", choice_given(doing.form, _MEANWHILE))
    return told_change(doing.subject, "paused", await pause(doing.session, doing.subject, doing.order, meanwhile))


async def _resume(doing: Doing) -> Sequence[str]:
    return told_change(doing.subject, "resumed", await resume(doing.session, doing.subject, doing.order))


async def _retire(doing: Doing) -> Sequence[str]:
    return told_change(doing.subject, "retired", await retire(doing.session, doing.subject, doing.order))


async def _unretire(doing: Doing) -> Sequence[str]:
    return told_change(doing.subject, "not retired", await unretire(doing.session, doing.subject, doing.order))


async def _ask_retire(doing: Doing) -> Asking:
    return Asking(
        f"Retire {doing.subject}? What waits of it is skipped and its backfill ends; nothing of it fires or alarms any "
        "more. What runs goes on to its end, and nothing is deleted."
    )


async def _run(doing: Doing) -> Sequence[str]:
    what, planned = choice_given(doing.form, _WHAT), instant_given(doing.form, _AT)
    since, until = (instant_given(doing.form, one) for one in _WINDOW)
    if (planned is not None) != (what == "planned"):
        raise Refused("--at: goes with “the planned instant below”, and with that alone")
    if what != "ad-hoc" and (since or until):
        raise Refused("--since and --until: a planned occurrence has its own window")
    if what == "ad-hoc":
        return (await fired_ad_hoc(doing.session, doing.subject, doing.order, (since, until)))[1:2]
    return (await fired(doing.session, doing.subject, planned, doing.order))[1:2]


def _range(doing: Doing) -> Range:
    since, until = instant_given(doing.form, _FROM), instant_given(doing.form, _TO)
    if since is None or until is None:
        raise Refused("--from and --until: both are needed, as 2026-08-20T02:00Z")
    most = doing.form.one(_MOST.name) or _MOST.usual
    if not (most.isascii() and most.isdigit() and 1 <= int(most[:4]) <= MOST_ACTIVE):
        raise Refused(f"--max-active: valid is a whole number from 1 to {MOST_ACTIVE}")
    mode = cast("Mode", choice_given(doing.form, _MODE))
    return Range(since, until, mode, yes_given(doing.form, _REVERSE.name), int(most))


async def _ask_backfill(doing: Doing) -> Asking:
    """Say what a backfill would do with each instant of its range."""
    made = await backfill(doing.session, doing.subject, _range(doing), doing.order, dry_run=True)
    rows = [(format_instant(one.past.scheduled_at), MEANT[one.action], one.why) for one in made.chosen]
    question = f"Run {len(made.started)} of the {len(rows)} instants of {doing.subject} there?"
    return Asking(question, ("Instant", "What is done", "Why"), rows, made.remarks)


async def _backfill(doing: Doing) -> Sequence[str]:
    made: Backfill = await backfill(doing.session, doing.subject, _range(doing), doing.order)
    started, chosen = len(made.started), len(made.chosen)
    return [f"backfill {made.id} of {doing.subject}: {started} of {chosen} are run", *made.remarks]


async def _ask_cancel_backfill(doing: Doing) -> Asking:
    return Asking(f"Cancel backfill {doing.subject}? What waits for it is skipped; what runs goes on to its end.")


async def _cancel_backfill(doing: Doing) -> Sequence[str]:
    job = await cancel_backfill(doing.session, number_of(doing.subject), doing.order)
    return [f"backfill {doing.subject} of {job} is cancelled; what runs goes on to its end"]


async def _maintain(doing: Doing) -> Sequence[str]:
    return await _planned(doing, doing.subject)


async def _maintain_all(doing: Doing) -> Sequence[str]:
    return await _planned(doing, None)


async def _planned(doing: Doing, job: str | None) -> Sequence[str]:
    since, end = instant_given(doing.form, MAINTENANCE_FIELDS[0]), end_given(doing.form)
    return [told_plan(await add_maintenance(doing.session, job, since, end, doing.order))]


async def _end_maintenance(doing: Doing) -> Sequence[str]:
    return [await end_maintenance(doing.session, number_of(doing.subject), doing.order)]


def number_of(text: str) -> int:
    """Read the number of a backfill or a maintenance. Raises Refused."""
    if not (text.isascii() and text.isdigit() and int(text[:20]) <= LARGEST_NUMBER):
        raise Refused(f"{text[:40]!r} is no number of one")
    return int(text)


def _job_act(name: str, label: str, explained: str, perform: Any, **more: Any) -> Act:
    return Act(name, f"/jobs/{{job}}/{name}", label, explained, perform, **more)


PAUSE: Final = _job_act(
    "pause",
    "Pause",
    "Nothing of its schedule fires until somebody resumes it. What runs goes on to its end.",
    _pause,
    fields=(_MEANWHILE,),
)
RESUME: Final = _job_act("resume", "Resume", "Its schedule fires again, from now on.", _resume)
RUN: Final = _job_act(
    "run",
    "Run now",
    "Claims an occurrence by hand. However often it is asked for, a planned one runs once.",
    _run,
    fields=(_WHAT, _AT, *_WINDOW),
)
BACKFILL: Final = _job_act(
    "backfill",
    "Backfill",
    "Runs past instants, a few at a time beside the schedule. What would be done is shown first.",
    _backfill,
    fields=(_FROM, _TO, _MODE, _REVERSE, _MOST),
    ask=_ask_backfill,
)
RETIRE: Final = _job_act(
    "retire",
    "Retire",
    "Ends it for good: nothing of it fires or alarms any more. Nothing is deleted.",
    _retire,
    ask=_ask_retire,
    dangerous=True,
)
UNRETIRE: Final = _job_act(
    "unretire", "Bring back", "It fires from now on; what was due meanwhile stays skipped.", _unretire
)
MAINTENANCE: Final = _job_act(
    "maintenance",
    "Plan maintenance",
    "What is out of order meanwhile is told to nobody before its end. Jobs fire as ever.",
    _maintain,
    fields=MAINTENANCE_FIELDS,
)
MAINTENANCE_OF_ALL: Final = Act(
    "maintenance",
    "/maintenance",
    "Plan maintenance of all jobs",
    MAINTENANCE.explained,
    _maintain_all,
    fields=MAINTENANCE_FIELDS,
)
END_MAINTENANCE: Final = Act(
    "end-maintenance",
    "/maintenance/{maintenance}/end",
    "End maintenance",
    "What is still out of order is then told.",
    _end_maintenance,
    what="maintenance",
)
CANCEL_BACKFILL: Final = Act(
    "cancel-backfill",
    "/backfills/{backfill}/cancel",
    "Cancel backfill",
    "What waits for it is skipped; what runs goes on to its end.",
    _cancel_backfill,
    what="backfill",
    ask=_ask_cancel_backfill,
    dangerous=True,
)
ACTS: Final = (
    PAUSE,
    RESUME,
    RUN,
    BACKFILL,
    RETIRE,
    UNRETIRE,
    MAINTENANCE,
    MAINTENANCE_OF_ALL,
    END_MAINTENANCE,
    CANCEL_BACKFILL,
)
