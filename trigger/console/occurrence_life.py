"""What became of an occurrence, step by step: from its row, its report and the audit trail. Pure.

The trail says what was done, when and by whom. Where it was pruned, the row still knows of the claim, the seal and the
close.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from shared.durations import show_seconds
from trigger.console.rendering import number

SHORT_ID: Final = 8
KINDS: Final = (
    "claim",
    "takeover",
    "released",
    "fan_out_failed",
    "sealed",
    "ending",
    "cancel",
    "closed",
    "rerun",
    "waits",
    "skipped",
    "missed",
    "coalesced",
    "expected",
    "check_in",
)
_IN_TIME: Final = 1.0


@dataclass(frozen=True, slots=True)
class Step:
    """One step: when (None: nobody knows), what happened, by whom, and what else is told of it.

    `after` is how many seconds passed since the step before; `state` names a colour, or is ''.
    """

    at: datetime | None
    what: str
    by: str = ""
    told: str = ""
    state: str = ""
    after: float | None = None


def life_of(
    shown: Mapping[str, Any], events: Sequence[Mapping[str, Any]], hosts: Mapping[str, str], planned_at: datetime | None
) -> list[Step]:
    """Give the steps in their order; `events` are those of KINDS, the earliest first.

    `hosts` are the hosts of instances that the events don't say; `planned_at` is since when the revision is in force
    that the occurrence is of.
    """
    steps = [*_due(shown), *(_step(shown, one, hosts) for one in events), *_of_the_row(shown, events, hosts)]
    steps += _of_the_report(shown)
    steps.sort(key=lambda one: one.at or shown["due_at"])
    return [_planned(shown, planned_at), *_timed(steps)]


def by_whom(event: Mapping[str, Any], hosts: Mapping[str, str]) -> str:
    """Say who or what did something: a person or a caller, else the instance, with its host and its release."""
    host = event["host"] or hosts.get(event["instance"] or "")
    place = f" on {host}" if host else ""
    if event["actor"] is not None:
        return f"{event['actor_kind'] or 'actor'} {event['actor']}{place}"
    if not event["instance"]:
        return ""
    version = f", release {event['version']}" if event["version"] else ""
    return f"instance {event['instance'][:SHORT_ID]}{place}{version}"


def _planned(shown: Mapping[str, Any], planned_at: datetime | None) -> Step:
    told = f"revision {shown['revision']} of the job"
    if planned_at is not None:
        told += f", in force since {planned_at:%Y-%m-%d %H:%M}Z"
    what = {"ad_hoc": "Ordered beside the schedule", "backfill": "Expected, by a backfill"}
    return Step(None, what.get(shown["origin"], "Expected, by the job's schedule"), told=told)


def _due(shown: Mapping[str, Any]) -> Iterator[Step]:
    put_off = (shown["due_at"] - shown["scheduled_at"]).total_seconds()
    told = f"put off by {show_seconds(put_off)}, the job's jitter" if put_off else ""
    yield Step(shown["due_at"], "Due", told=told)


def _step(shown: Mapping[str, Any], event: Mapping[str, Any], hosts: Mapping[str, str]) -> Step:
    what, told = _TOLD[event["kind"]](shown, event, event["detail"])
    state = event["detail"].get("state") or event["kind"]
    return Step(_at(shown, event), what, by_whom(event, hosts), told, str(state))


def _at(shown: Mapping[str, Any], event: Mapping[str, Any]) -> datetime:
    """Give when it was, as the row has it where it has: the trail's rows are written some milliseconds later."""
    named = {"claim": "claimed_at", "sealed": "sealed_at"}.get(event["kind"])
    if event["kind"] == "closed" and event["detail"].get("generation") == shown["generation"]:
        named = "closed_at"
    at: datetime = (shown[named] if named else None) or event["at"]
    return at


def _of_the_row(
    shown: Mapping[str, Any], events: Sequence[Mapping[str, Any]], hosts: Mapping[str, str]
) -> Iterator[Step]:
    """Give what the row says and the trail does not, or not any more."""
    told = {one["kind"] for one in events}
    who = {"actor": shown["fired_by"], "actor_kind": None, "instance": shown["claimed_by"], "host": shown["claimed_on"]}
    who["version"] = shown["claimed_version"]
    if shown["claimed_at"] is not None and not told & {"claim", "check_in"}:
        late = (shown["claimed_at"] - shown["due_at"]).total_seconds()
        yield Step(shown["claimed_at"], "Claimed", by_whom(who, hosts), _lateness(late), "claim")
    if shown["sealed_at"] is not None and "sealed" not in told:
        yield Step(shown["sealed_at"], "All accounts read", told=_many(shown["accounts_read"]), state="sealed")
    if shown["closed_at"] is not None and not told & {"closed", "check_in"}:
        yield Step(shown["closed_at"], f"Closed: {shown['state']}", told=shown["reason"] or "", state=shown["state"])


def _of_the_report(shown: Mapping[str, Any]) -> Iterator[Step]:
    report = shown["report"] or {}
    for name, what in (("first_account_at", "First account started"), ("last_account_at", "Last account ended")):
        if report.get(name):
            yield Step(datetime.fromisoformat(report[name]), what)


def _timed(steps: Sequence[Step]) -> Iterator[Step]:
    before: datetime | None = None
    for one in steps:
        after = None if before is None or one.at is None else (one.at - before).total_seconds()
        yield replace(one, after=after)
        before = one.at or before


def _lateness(seconds: float) -> str:
    return "in time" if seconds < _IN_TIME else f"{show_seconds(seconds)} after it was due"


_Told = tuple[str, str]
_Event = Mapping[str, Any]


def _claim(shown: _Event, event: _Event, detail: _Event) -> _Told:
    late = _lateness((_at(shown, event) - shown["due_at"]).total_seconds())
    region = f", region {detail['region']}" if detail.get("region") else ""
    reason = f": {event['reason']}" if event["reason"] else ""
    return ("Fired" if event["actor"] else "Claimed"), late + region + reason


def _takeover(_: _Event, event: _Event, detail: _Event) -> _Told:
    host = f" on {event['former_host']}" if event["former_host"] else ""
    told = f"from instance {str(detail.get('from'))[:SHORT_ID]}{host}, of which nothing was heard any more"
    return "Taken over", f"{told}; epoch {detail.get('epoch')}, {_read(detail)}"


def _released(_: _Event, __: _Event, detail: _Event) -> _Told:
    return "Handed back, for another to go on", f"epoch {detail.get('epoch')}, {_read(detail)}"


def _fan_out_failed(_: _Event, event: _Event, detail: _Event) -> _Told:
    return "Accounts could not be read", f"after {detail.get('attempts')} attempts: {event['reason'] or 'no reason'}"


def _sealed(_: _Event, __: _Event, detail: _Event) -> _Told:
    return "All accounts read", _many(detail.get("accounts_read"))


def _ending(_: _Event, event: _Event, detail: _Event) -> _Told:
    return f"Dispatch ended: {detail.get('ending', 'cancel')}", event["reason"] or ""


def _cancel(_: _Event, event: _Event, __: _Event) -> _Told:
    return "Cancelled", event["reason"] or ""


def _closed(_: _Event, event: _Event, detail: _Event) -> _Told:
    total = f", {_many(detail['total'])}" if detail.get("total") is not None else ""
    reason = f": {event['reason']}" if event["reason"] else ""
    return f"Closed: {detail.get('state')}", f"generation {detail.get('generation')}{total}{reason}"


def _rerun(_: _Event, event: _Event, detail: _Event) -> _Told:
    more = "".join(f", {name.replace('_', ' ')}" for name in ("reconciled", "new_key") if detail.get(name))
    accounts = f"{_many(detail['accounts'])}{more}: " if "accounts" in detail else ""
    return f"Run again: generation {detail.get('generation', '?')}", f"{accounts}{event['reason'] or 'no reason'}"


def _waits(_: _Event, __: _Event, detail: _Event) -> _Told:
    return "Made to wait", f"for the end of {detail.get('because_of')}"


def _decided(shown: _Event, event: _Event, detail: _Event) -> _Told:
    because = f" ({detail['because_of']})" if detail.get("because_of") else ""
    into = f"into {shown['coalesced_into']}" if event["kind"] == "coalesced" and shown["coalesced_into"] else ""
    return event["kind"].capitalize(), f"{event['reason'] or into}{because}"


def _expected(_: _Event, event: _Event, detail: _Event) -> _Told:
    because = f" ({detail['because']})" if detail.get("because") else ""
    return "Expected again", f"it was {detail.get('was')}{because}: {event['reason'] or 'no reason'}"


def _check_in(_: _Event, event: _Event, detail: _Event) -> _Told:
    what = {"start": "Start reported", "success": "Success reported", "fail": "Failure reported"}
    run = f", run {detail['run']}" if detail.get("run") else ""
    refused = f", refused: {detail['refused']}" if detail.get("refused") else ""
    return what.get(detail.get("event", ""), "Checked in"), f"{event['reason'] or ''}{run}{refused}".strip(", ")


def _read(detail: _Event) -> str:
    return f"{_many(detail.get('accounts_read'))} read until then"


def _many(accounts: int | None) -> str:
    return f"{number(accounts or 0)} {'account' if accounts == 1 else 'accounts'}"


_TOLD: Final = {
    "claim": _claim,
    "takeover": _takeover,
    "released": _released,
    "fan_out_failed": _fan_out_failed,
    "sealed": _sealed,
    "ending": _ending,
    "cancel": _cancel,
    "closed": _closed,
    "rerun": _rerun,
    "waits": _waits,
    "skipped": _decided,
    "missed": _decided,
    "coalesced": _decided,
    "expected": _expected,
    "check_in": _check_in,
}
