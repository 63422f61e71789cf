"""What a check-in does to an occurrence, by the state that it is found in and by the run that has it. Pure.

Calls may come late, twice and in another order than they were sent. So a success is final, and a failure is mended by a
later success. Of two runs of one occurrence the one that started last has it: what the other reports changes nothing.
"""

from enum import StrEnum
from typing import Any, Literal

from schemas.states import OccurrenceState

Event = Literal["start", "success", "fail"]
# What names a run: a pod, a process, a random text.
RUN = r"^[A-Za-z0-9._:/+@-]{1,100}\Z"


class Ruling(StrEnum):
    """What becomes of the occurrence.

    `start`: it starts, and with it ends if that is what is reported. `take_over`: another run has it from now on.
    `again`: it opens in its next generation. `end`: it ends. `known`: it was reported before. `over`: it has ended
    otherwise. `another_run`: it is not this run's to end.
    """

    START = "start"
    TAKE_OVER = "take_over"
    AGAIN = "again"
    END = "end"
    KNOWN = "known"
    OVER = "over"
    ANOTHER_RUN = "another_run"


def ruled(event: Event, run: str | None, state: str, has_it: str | None, *, started_before: bool = False) -> Ruling:
    """Decide; `has_it` is the run that the occurrence was last reported by. A run that isn't named may be any.

    `started_before`: this run's start was recorded before, so that it is no new one that takes the occurrence over.
    """
    is_another = run is not None and has_it is not None and run != has_it
    if state == OccurrenceState.EXPECTED:
        return Ruling.START
    if is_another and started_before and event == "start":
        return Ruling.ANOTHER_RUN
    if state == OccurrenceState.CLAIMED:
        begun = Ruling.TAKE_OVER if is_another else Ruling.KNOWN
        ended = Ruling.ANOTHER_RUN if is_another else Ruling.END
        return begun if event == "start" else ended
    return _ruled_ended(event, state, is_another=is_another)


def _ruled_ended(event: Event, state: str, *, is_another: bool) -> Ruling:
    """Decide of one that has ended; a start of the same run was sent before its end, and overtaken by it."""
    match state, event:
        case (OccurrenceState.SUCCEEDED, "success") | (OccurrenceState.FAILED, "fail"):
            return Ruling.KNOWN
        case ((OccurrenceState.SUCCEEDED | OccurrenceState.FAILED), "start") if not is_another:
            return Ruling.KNOWN
        case OccurrenceState.FAILED, "success":
            return Ruling.AGAIN
        case ((OccurrenceState.FAILED | OccurrenceState.CANCELLED), "start") if is_another:
            return Ruling.AGAIN
    return Ruling.OVER


def over(row: Any) -> str:
    """Say how an occurrence ended, and why."""
    return f"{row['state']} ({row['reason']})" if row["reason"] else str(row["state"])
