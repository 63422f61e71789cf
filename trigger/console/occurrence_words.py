"""What an occurrence's state means, in words, and what a person can do about it from the command line. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from schemas.occurrence import format_instant
from shared.durations import show_seconds
from trigger.console.rendering import number
from trigger.standing import Standing, told_pause, told_retirement

PROGRAM: Final = "python -m trigger"


@dataclass(frozen=True, slots=True)
class Words:
    """What is so, what can be done, and the lines to type for it."""

    told: str
    advice: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """What the words depend on: the occurrence as `facts_of` shows it, its job, and the database's time.

    `because_of` is what its last decision refers to, or ''.
    """

    shown: Mapping[str, Any]
    standing: Standing
    coordination: str
    now: datetime
    because_of: str = ""

    @property
    def name(self) -> str:
        """The occurrence's written form."""
        return str(self.shown["occurrence"])

    @property
    def job(self) -> str:
        """The job's name."""
        return str(self.shown["job"])

    @property
    def is_own(self) -> bool:
        """Whether it is one worker's own."""
        return str(self.shown["variant"]).startswith("@")


def words_of(known: Known) -> Words:
    """Say what the occurrence's state means."""
    return _SAID[known.shown["state"]](known)


def _expected(known: Known) -> Words:
    shown = known.shown
    seconds = (shown["due_at"] - known.now).total_seconds()
    when = f"It is due in {show_seconds(seconds)}." if seconds > 0 else f"It was due {show_seconds(-seconds)} ago."
    if known.standing.retired_at is not None or known.standing.paused_at is not None:
        return _stopped(known, when)
    if shown["waits_for"]:
        told = f"{when} It waits for the end of {shown['waits_for']}, which still runs."
        return Words(told, "It starts by itself once that is over.", (f"{PROGRAM} show {shown['waits_for']}",))
    if shown["origin"] == "backfill":
        told = f"{when} It waits for its turn in a backfill."
        return Words(told, "Live triggers run it behind the schedule.", (f"{PROGRAM} backfills {known.job}",))
    if seconds > 0:
        cancel = f'{PROGRAM} cancel {known.name} --reason "…"'
        return Words(when, "It starts by itself. To have it not run, cancel it.", (cancel,))
    return _late(known, when)


def _stopped(known: Known, when: str) -> Words:
    """Speak of one whose job does not fire."""
    if known.standing.retired_at is not None:
        return Words(f"{when} The job is retired {told_retirement(known.standing)}: it does not run.")
    resume = f'{PROGRAM} resume {known.job} --reason "…"'
    return Words(f"{when} The job is paused {told_pause(known.standing)}.", "Resume the job to have it run.", (resume,))


def _late(known: Known, when: str) -> Words:
    """Speak of one that is due, and that nobody has claimed."""
    if known.coordination == "elsewhere":
        told = f"{when} The job runs elsewhere, and has not reported that this one has begun."
        return Words(told, "See whether it runs there. Without a report it is recorded as missed.")
    at = format_instant(known.shown["scheduled_at"])
    fire = f'{PROGRAM} fire {known.job} --at {at} --reason "…"'
    if known.coordination == "external":
        told = f"{when} An outside scheduler is to call for it, and has not."
        return Words(told, "See to that scheduler, or fire it by hand.", (fire,))
    advice = "A live trigger claims it by itself: see what keeps them from it, or fire it."
    lines = (f"{PROGRAM} status", f"{PROGRAM} doctor", fire)
    return Words(f"{when} No trigger has claimed it yet.", advice, lines)


def _active(known: Known) -> Words:
    shown = known.shown
    cancel = f'{PROGRAM} cancel {known.name} --reason "…"'
    over = shown["finish_by"] is not None and shown["finish_by"] < known.now
    late = " It should have been finished by now." if over else ""
    if known.coordination == "elsewhere":
        run = f" (run {shown['run_id']})" if shown["run_id"] else ""
        told = f"It runs elsewhere{run}, and has not reported its end.{late}"
        return Words(told, "See how far it is there. Without a report it is closed as failed.")
    if shown["ending"]:
        told = f"It ends: nothing of it is started any more ({shown['ending'].replace('_', ' ')}: "
        return Words(f"{told}{shown['ending_reason']}). What is being executed settles first.{late}")
    if shown["state"] == "running":
        advice = "It goes on by itself, and closes with its last account. To leave out what has not started, cancel it."
        return Words(f"All its accounts are read, and workers run them.{late}", advice, (cancel,))
    read = number(shown["accounts_read"])
    told = f"Its accounts are being read, {read} so far; workers begin with them meanwhile.{late}"
    if shown["fan_out_error"]:
        told += f" Their source has failed {shown['fan_out_attempts']} times: {shown['fan_out_error']}"
    return Words(told, "If its trigger falls silent another one takes over. To end it, cancel it.", (cancel,))


def _succeeded(known: Known) -> Words:
    counts = known.shown["counts"] or {}
    bad = (counts.get("total") or 0) - (counts.get("succeeded") or 0)
    if bad:
        return Words(
            f"{number(bad)} of its accounts did not succeed, which its job's partial_ok allows.",
            "Nothing need be done.",
        )
    if known.coordination == "elsewhere":
        return Words("It has run elsewhere, and reported success.")
    return Words("Every account succeeded." if counts.get("total") else "It ran, and there was no account to run for.")


def _ended_badly(known: Known) -> Words:
    shown, why = known.shown, _why(known)
    if known.coordination == "elsewhere":
        success = f"{PROGRAM} check-in {known.job} success --at {format_instant(shown['scheduled_at'])}"
        advice = "Run it again there: a success that it reports, or that you report for it, mends this."
        return Words(why, advice, (success,))
    if known.is_own:
        return Words(why, _OWN)
    if shown["pruned_before"]:
        return Words(why, "Its accounts were pruned: they can be run no more.")
    if known.standing.retired_at is not None:
        return Words(why, _RETIRED)
    rerun = f'{PROGRAM} rerun {known.name} --failed --reason "…"'
    told = "Mend the cause, then run again the accounts that did not succeed: those that did are left alone."
    return Words(why, told, (rerun,))


def _why(known: Known) -> str:
    """Say how many accounts did not succeed, and what the row gives as the reason, where that says more."""
    counts, reason = known.shown["counts"] or {}, known.shown["reason"]
    if not counts.get("total"):
        return f"It is {known.shown['state']}: {reason or 'no reason is recorded'}."
    bad = counts["total"] - (counts["succeeded"] or 0)
    more = f": {reason}" if reason and reason != "accounts failed" else ""
    return f"{number(bad)} of {number(counts['total'])} accounts did not succeed{more}."


def _missed(known: Known) -> Words:
    told = f"It never ran: {known.shown['reason']}."
    if known.coordination == "elsewhere":
        return Words(told, "If it is wanted still, run it there: a report that comes now changes nothing here.")
    return _made_up_for(known, told, _COVERED)


def _skipped(known: Known) -> Words:
    reason = known.shown["reason"]
    because = f" ({known.because_of})" if known.because_of else ""
    if reason in _FOR_GOOD:
        return Words(_FOR_GOOD[reason])
    told = _SKIPPED.get(reason, f"It was decided not to run it: {reason}")
    return _made_up_for(known, f"{told}{because}.", _COVERED)


def _coalesced(known: Known) -> Words:
    into = known.shown["coalesced_into"]
    told = f"It did not run by itself: its time is that of {into}, whose window begins earlier for it."
    return _made_up_for(known, told, "Nothing need be done; its work is the other one's.")


def _made_up_for(known: Known, told: str, advice: str) -> Words:
    """Say how one that did not run can still be run, which is a scheduled one whose instant has passed."""
    at = format_instant(known.shown["scheduled_at"])
    if known.is_own:
        return Words(told, _OWN)
    if known.shown["variant"] or known.shown["scheduled_at"] > known.now:
        return Words(told, advice)
    if known.standing.retired_at is not None:
        return Words(told, f"{advice} {_RETIRED}")
    order = f"{PROGRAM} backfill {known.job} --from {at} --until {at}"
    return Words(
        told, f"{advice} If it is wanted by itself, run it now.", (f"{order} --dry-run", f'{order} --reason "…"')
    )


_OWN: Final = "It is a worker's own: that worker runs the next instant, and nobody runs this one again."
_RETIRED: Final = "The job is retired: nothing of it runs any more, unless it is unretired."
_COVERED: Final = "The next occurrence that runs covers its time, if the job goes by its window."
_SKIPPED: Final = {
    "overlap": "It was skipped since another occurrence of the job still ran",
    "catch_up": "It was skipped since it could only have begun later than start_within, and the job catches up nothing",
    "catch_up_at_most": "It was skipped since more had to be caught up than catch_up_at_most allows",
    "paused": "It was skipped since the job was paused",
    "backfill cancelled": "It waited in a backfill that was cancelled",
}
_FOR_GOOD: Final = {
    "superseded": "It is not on the plan any more: the job's schedule has changed. Nothing is to be done.",
    "calendar": "The job's calendar leaves this instant out. Nothing is to be done.",
    "retired": "It was skipped since the job was retired. Nothing is to be done.",
}
_SAID: Final[Mapping[str, Callable[[Known], Words]]] = {
    "expected": _expected,
    "claimed": _active,
    "running": _active,
    "succeeded": _succeeded,
    "partial": _ended_badly,
    "failed": _ended_badly,
    "cancelled": _ended_badly,
    "missed": _missed,
    "skipped": _skipped,
    "coalesced": _coalesced,
}
