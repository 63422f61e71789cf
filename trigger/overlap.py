"""What becomes of the instant that would run while an earlier occurrence of the job still does. Pure.

With `skip` it is skipped, and with it the instants that it would have covered: they cannot be coalesced into an
occurrence that doesn't run. The next one that runs covers their time.
"""

from dataclasses import dataclass, replace

from shared.decisions import Overlap
from trigger.catch_up import CaughtUp, Due


@dataclass(frozen=True, slots=True)
class Decided:
    """What is applied: the catch-up's decision, with what the overlap took out of it."""

    caught_up: CaughtUp
    overlapping: tuple[Due, ...] = ()


def without_overlap(caught_up: CaughtUp, policy: Overlap, *, active: bool) -> Decided:
    """Decide; `active` tells whether an occurrence of the job is claimed or running."""
    if caught_up.run is None or not active:
        return Decided(caught_up)
    match policy:
        case "skip":
            overlapping = (*caught_up.coalesced, caught_up.run)
            return Decided(replace(caught_up, run=None, coalesced=()), overlapping)
