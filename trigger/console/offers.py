"""What a page offers to do, by how things stand. Pure.

It is an offer, and no promise: whether it can be done is decided by who does it, under the row's lock.
"""

from collections.abc import Mapping
from typing import Any, Final

from schemas.states import RERUNNABLE
from trigger.console import acts_alerts, acts_fleet, acts_jobs, acts_occurrences
from trigger.console.acts import Act
from trigger.standing import Standing

UNSUCCESSFUL: Final = frozenset({"failed", "dead", "cancelled"})
ENDABLE: Final = frozenset({"expected", "claimed", "running"})


def offered_for_job(standing: Standing, coordination: str) -> tuple[Act, ...]:
    """Give what can be done with a job."""
    if standing.retired_at is not None:
        return (acts_jobs.UNRETIRE,)
    first = acts_jobs.PAUSE if standing.paused_at is None else acts_jobs.RESUME
    here = (acts_jobs.RUN, acts_jobs.BACKFILL) if coordination not in {"every", "elsewhere"} else ()
    return (first, *here, acts_jobs.MAINTENANCE, acts_jobs.RETIRE)


def offered_for_occurrence(shown: Mapping[str, Any], coordination: str) -> tuple[Act, ...]:
    """Give what can be done with an occurrence."""
    own = coordination in {"every", "elsewhere"}
    if shown["state"] in RERUNNABLE and not own and shown["pruned_before"] is None:
        return (acts_occurrences.RERUN,)
    return (acts_occurrences.CANCEL,) if shown["state"] in ENDABLE and shown["ending"] is None else ()


def offered_for_account(
    shown: Mapping[str, Any], coordination: str, account: Mapping[str, Any] | None
) -> tuple[Act, ...]:
    """Give what can be done with one account of an occurrence; None where it has none of that name."""
    if account is None or account["state"] not in UNSUCCESSFUL:
        return ()
    # A form turns each line break into another, and has no line for blanks alone.
    is_a_line = account["account"].strip() and not set("\r\n") & set(account["account"])
    offered = offered_for_occurrence(shown, coordination) if is_a_line else ()
    return tuple(act for act in offered if act is acts_occurrences.RERUN)


def offered_for_backfill(backfill: Mapping[str, Any]) -> tuple[Act, ...]:
    """Give what can be done with a backfill."""
    return (acts_jobs.CANCEL_BACKFILL,) if backfill["state"] == "active" else ()


def offered_for_maintenance(maintenance: Mapping[str, Any]) -> tuple[Act, ...]:
    """Give what can be done with a planned maintenance."""
    return () if maintenance["state"] == "over" else (acts_jobs.END_MAINTENANCE,)


def offered_for_all_jobs() -> tuple[Act, ...]:
    """Give what can be done with all jobs at once."""
    return (acts_jobs.MAINTENANCE_OF_ALL,)


def offered_for_parked(count: int | None) -> tuple[Act, ...]:
    """Give what can be done with parked messages; None where it is not known how many there are."""
    return (acts_fleet.REDRIVE,) if count else ()


def offered_for_alert(alert: Mapping[str, Any]) -> tuple[Act, ...]:
    """Give what can be done about an alert."""
    if alert["closed_at"] is not None:
        return ()
    unsilence = (acts_alerts.UNSILENCE,) if alert["standing"] == "silenced" else ()
    if alert["acknowledged_at"] is not None:
        return unsilence
    return (acts_alerts.ACKNOWLEDGE, acts_alerts.SILENCE, *unsilence)


OFFERS: Final = {
    one.__name__: one
    for one in (
        offered_for_account,
        offered_for_alert,
        offered_for_all_jobs,
        offered_for_backfill,
        offered_for_job,
        offered_for_maintenance,
        offered_for_occurrence,
        offered_for_parked,
    )
}
