"""The protocol's arrows, from one step to the next, and how many crashes fell on each."""

from collections.abc import Mapping

# A crash is counted on the one arrow that the chosen task was crossing: it had taken the left step, in a transaction
# that was undone or for good, and died before the right one. What else its process was doing is not counted.
ARROWS: dict[str, tuple[str, ...]] = {
    "register → plan": ("registered → plan", "registered → claim", "register → commit", "begin → plan", "registered →"),
    "plan → claim": ("planned → claim", "planned → plan", "plan → plan", "plan → commit", "begin → claim"),
    "claim → page": ("claimed →", "claim →"),
    "decide → commit": ("decide →", "decided →"),
    "take over → page": ("taken over →",),
    "page → page": ("paged → page", "page → page", "page → commit", "page →"),
    "page → seal": ("paged → seal",),
    "seal → close": ("sealed →",),
    "failed fan-out → take over": ("fan-out failed →", "begin → fail fan-out", "paged → fail fan-out"),
    "rows → publish": ("begin → publish",),
    "publish → mark": ("published →",),
    "mark → publish": ("marked →",),
    "deliver → start": ("begin → start", "begin → start alone", "ack → start", "ack → start alone", "delivered →"),
    "start → execute": ("start → execute", "started → execute"),
    "execute → settle": ("execute → settle", "execute → execute", "settle → settle"),
    "settle → commit": ("settle → commit",),
    "settle → ack": ("settled → ack",),
    "settle → retry": ("settled → send",),
    "retry → mark": ("sent → mark",),
    "mark → ack": ("marked → ack",),
    "start alone → start": ("started alone →",),
    "missed → hand on": (
        "begin → hand on",
        "start → hand on",
        "started alone → hand on",
        "started → hand on",
        "start undone →",
    ),
    "hand on → ack": ("sent → ack",),
    "give up → dead letter": ("begin → reject", "rejected →", "started alone → reject"),
    "dead letter → bury": ("begin → bury", "ack → bury"),
    "bury → ack": ("buried →",),
    "publish alone → ack": ("published alone →", "begin → publish alone", "ack → publish alone"),
    "settle → close": ("begin → close", "begin → close pass"),
    "close → next": ("closed →",),
    "sweep: expired → publish": ("swept expired →",),
    "sweep: lost → publish": ("swept lost →",),
    "sweep: rows cancelled → close": ("rows cancelled →",),
    "sweep: deadline → cancel rows": ("deadline →",),
    "cancel → close": ("cancelled →", "cancel →"),
    "re-run → publish": ("rerun →",),
}


def arrow_of(crossing: str) -> str:
    """Name the arrow that a crash fell on; what is no arrow of the protocol keeps its own name."""
    exact = next((arrow for arrow, crossings in ARROWS.items() if crossing in crossings), None)
    if exact is not None:
        return exact
    beginning = crossing.partition("→")[0] + "→"
    return next((arrow for arrow, crossings in ARROWS.items() if beginning in crossings), f"other: {crossing}")


def by_arrow(crashes: Mapping[str, int]) -> dict[str, int]:
    """Add crashes up by arrow; every arrow is named."""
    counted = dict.fromkeys(ARROWS, 0)
    for crossing, number in crashes.items():
        arrow = arrow_of(crossing)
        counted[arrow] = counted.get(arrow, 0) + number
    return counted
