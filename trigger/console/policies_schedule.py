"""A recorded schedule in sentences: its kind, what clocks that change do to it, what a calendar leaves out. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shared.zones import UTC_NAME
from trigger.console.recorded import Policy, Recorded, text, whole

GAP: Final = {
    "skip": "When clocks go forward over its time, which then does not exist, it does not run.",
    "next_valid": "When clocks go forward over its time, which then does not exist, it runs at the next that does.",
    "shift": "When clocks go forward over its time, which then does not exist, it runs later by as much as they go.",
}
FOLD: Final = {
    "first": "When clocks go back and its time happens twice, it runs the first time only.",
    "second": "When clocks go back and its time happens twice, it runs the second time only.",
    "both": "When clocks go back and its time happens twice, it runs both times.",
}
EXCLUSIONS: Final = ("weekdays", "dates", "between", "calendar")
_NAMED: Final = 5


def schedule_policies(schedule: Recorded) -> Iterator[Policy]:
    """Say when a schedule is due; a definition without a `kind` is cron text."""
    kind = schedule.value("kind")
    match "cron" if kind is None else kind:
        case "cron":
            yield from _cron(schedule)
        case "every":
            yield from _every(schedule)
        case "instants":
            schedule.take("kind")
            yield from schedule.of("instants", _instants)
        case "except":
            schedule.take("kind")
            inner = schedule.part("schedule")
            yield from schedule_policies(inner)
            yield from inner.rest()
            yield from _left_out(schedule)


def _cron(schedule: Recorded) -> Iterator[Policy]:
    schedule.take("kind")
    yield from schedule.of("text", lambda cron: f"It is due by the cron text {text(cron)}.")
    yield from schedule.of("zone", _clocks)
    yield from schedule.worded("gap", GAP)
    yield from schedule.worded("fold", FOLD)
    schedule.take("gap", "fold")


def _clocks(zone: Any) -> str:
    if text(zone) == UTC_NAME:
        return "It goes by UTC, where clocks never change."
    return f"It goes by the clocks of {zone}."


def _every(schedule: Recorded) -> Iterator[Policy]:
    schedule.take("kind")
    yield from schedule.lasting("seconds", lambda step: f"It is due every {step}, whatever clocks do.")
    yield from schedule.of("anchor", lambda anchor: f"The steps are counted from {text(anchor)}.")


def _instants(instants: Any) -> str:
    last = text(instants[-1])
    if len(instants) == 1:
        return f"It is due once, at {last}."
    return (
        f"It is due at {len(instants)} instants that are written out; the last is {last}, and nothing is due after it."
    )


def _left_out(schedule: Recorded) -> Iterator[Policy]:
    excluded = schedule.value("exclude")
    if isinstance(excluded, list):
        schedule.take("exclude")
        for one in excluded:
            recorded = Recorded({"exclude": one}, "schedule")
            yield from recorded.of("exclude", exclusion)
    yield from schedule.of("zone", lambda zone: f"A day is left out by the date that the clocks of {text(zone)} show.")


def exclusion(one: Mapping[str, Any]) -> str:
    """Say what an exclusion leaves out, '' for one of a kind that this release does not know."""
    match one["kind"]:
        case "weekdays":
            return f"It does not run on {_listed(one['names'])}."
        case "dates":
            return f"It does not run on {_listed(one['days'])}."
        case "between":
            return f"It does not run from {text(one['first'])} to {text(one['last'])}, both included."
        case "calendar":
            days = one["days"]
            count = f"{whole(len(days))} days" if len(days) > 1 else "one day"
            last = f"the last is {text(days[-1])}, and nothing is left out after it"
            return f"It does not run on the {count} of the calendar {text(one['name'])}; {last}."
    return ""


def _listed(values: Any) -> str:
    named = [text(value) for value in values[:_NAMED]]
    more = len(values) - len(named)
    if more:
        return f"{', '.join(named)} and {more} more days"
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
