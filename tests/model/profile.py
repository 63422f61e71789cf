"""What a run is like: which job it has, how its accounts behave, and what goes wrong how often."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from shared.decisions import CatchUp, Overlap, OverlapBy

WELL = {"well": 1.0}
MIXED = {"well": 5.0, "flaky": 2.0, "failing": 1.0, "later": 0.5, "hopeless": 0.5, "idle": 0.5}
DEADLY = {"well": 4.0, "poison": 1.0, "flaky": 1.0}
SET_MIXED = {"well": 5.0, "failing": 1.0, "silent": 1.0, "idle": 0.5, "broken": 0.5}
BROKEN = {"well": 4.0, "broken": 1.0, "flaky": 1.0}

Fault = Literal["crash", "freeze", "cut", "lost reply", "channel", "poke"]


@dataclass(frozen=True, slots=True)
class Profile:
    """Rates are chances at each turn. `focus` raises a fault's chance just before a statement."""

    mode: str = "single"
    kinds: Mapping[str, float] = field(default_factory=lambda: MIXED)
    accounts: int = 6
    page_size: int = 2
    bound: int = 100
    triggers: int = 2
    workers: int = 3
    head_start: float = 0
    turns: int = 700
    crash: float = 0.008
    freeze: float = 0.005
    cut: float = 0.003
    lost_reply: float = 0.002
    channel: float = 0.004
    time: float = 0.06
    lost: float = 0.04
    refused: float = 0.02
    repeated: float = 0.06
    in_order: float = 0.7
    source_fails: float = 0.03
    operator: bool = True
    operator_acts: tuple[str, ...] = ("cancel", "rerun", "rerun", "fire")
    delivery_limit: int = 20
    eager: float = 1.5
    faulty_source: bool = False
    revisions: bool = False
    catch_up: CatchUp = "latest"
    overlap: Overlap = "skip"
    overlap_by: OverlapBy = "job"
    # Of each release of the code: of the first, and of the one that moves the schedule.
    coordination: tuple[Literal["claim", "leader", "every"], Literal["claim", "leader", "every"]] = ("claim", "claim")
    on_finish_within: Literal["alert", "stop"] = "alert"
    steps: tuple[float, ...] = (0.01, 0.01, 0.5, 2, 6, 15, 40, 100)
    jump: float = 0.05
    jumps: tuple[float, ...] = (200, 600, 1200, 4000)
    burst: float = 0.5
    hunted: str = ""
    focus: Mapping[str, tuple[Fault, float]] = field(default_factory=dict)


BESIDE = (300, 900, 900, 1800)
EVERY_ACT = ("cancel", "rerun", "fire", "call off")
RUN_AGAIN = ("rerun", "rerun", "cancel")
# Nothing fails by itself, and everything arrives in order.
PEACE = Profile(crash=0, freeze=0, cut=0, lost_reply=0, channel=0, lost=0, in_order=1, source_fails=0)
PROFILES = {
    "single": Profile(),
    "chunked": Profile(mode="chunked"),
    "batched": Profile(mode="batched", kinds=BROKEN),
    "set based": Profile(mode="set_based", kinds=SET_MIXED),
    "outside": Profile(mode="outside"),
    "poison": Profile(mode="single", kinds=DEADLY, workers=3),
    "poison in chunks": Profile(mode="chunked", kinds=DEADLY),
    "poison outside": Profile(mode="outside", kinds=DEADLY),
    "killers": Profile(kinds={"poison": 1.0}, accounts=5, workers=4, operator_acts=("rerun",)),
    "revisions": Profile(
        kinds=WELL,
        accounts=2,
        revisions=True,
        triggers=3,
        workers=1,
        turns=900,
        jump=0.3,
        jumps=(100, 200, 300),
        operator_acts=("fire", "call off", "rerun"),
        focus={"tick": ("crash", 0.06), "register_instance": ("crash", 0)},
    ),
    "revisions for days": Profile(
        kinds=WELL,
        accounts=2,
        revisions=True,
        triggers=3,
        workers=1,
        turns=900,
        jump=0.1,
        jumps=(300, 5000, 20000),
        operator=False,
    ),
    "leader": Profile(
        kinds=WELL,
        accounts=2,
        coordination=("leader", "leader"),
        triggers=3,
        workers=1,
        turns=700,
        jump=0.2,
        jumps=(20, 40, 900),
        operator_acts=("fire", "rerun", "cancel"),
        focus={"lead": ("freeze", 0.1), "claim": ("freeze", 0.2)},
    ),
    "leader comes": Profile(
        kinds=WELL,
        accounts=2,
        coordination=("claim", "leader"),
        revisions=True,
        triggers=3,
        workers=1,
        turns=900,
        jump=0.3,
        jumps=(40, 100, 300),
        operator=False,
        focus={"lead": ("crash", 0.03)},
    ),
    "deadline": Profile(mode="outside", on_finish_within="stop", jump=0.1, jumps=(300, 500, 900)),
    "catch up": Profile(kinds=WELL, accounts=3, catch_up="skip", jump=0.2, jumps=(300, 900, 1800, 4000)),
    "peace": replace(
        PEACE,
        turns=1000,
        refused=0,
        repeated=0.2,
        jump=0,
        steps=(0.01, 0.5, 1),
        time=0.15,
        head_start=57,
        operator=False,
    ),
    "outage": replace(
        PEACE,
        workers=0,
        refused=0.1,
        repeated=0,
        operator=False,
        jump=0.2,
        turns=500,
        kinds=WELL,
    ),
    "fired": Profile(
        kinds=WELL, accounts=3, triggers=2, turns=500, operator_acts=("fire",), eager=4, jump=0.3, jumps=(900, 1800)
    ),
    "claims": Profile(
        kinds=WELL,
        accounts=2,
        triggers=3,
        workers=1,
        turns=700,
        jump=0.2,
        jumps=(900,),
        burst=0.1,
        operator_acts=("fire", "rerun", "cancel"),
    ),
    "long down": Profile(kinds=WELL, accounts=2, workers=1, turns=500, jump=0.1, jumps=(900, 190_000), operator=False),
    "pages": Profile(
        kinds=WELL,
        accounts=10,
        page_size=1,
        triggers=4,
        workers=1,
        turns=600,
        source_fails=0,
        burst=0.2,
        steps=(0.5, 2, 15, 40),
        eager=3,
        operator_acts=("cancel", "rerun"),
        focus={"move_cursor": ("freeze", 0.3), "write_page": ("crash", 0.05), "seal": ("freeze", 0.5)},
    ),
    "marks": Profile(
        kinds={"failing": 3, "well": 1, "flaky": 1},
        accounts=4,
        eager=10,
        operator_acts=("rerun",),
        focus={"mark_published": ("freeze", 0.5), "effect": ("freeze", 0.05)},
    ),
    "never read": Profile(kinds=WELL, source_fails=1.0, faulty_source=True, turns=400),
    "outside frozen": Profile(mode="outside", focus={"called": ("freeze", 0.3), "settle_outside": ("freeze", 0.2)}),
    "copies": Profile(repeated=0.6, in_order=0.3, burst=0.2, focus={"effect": ("freeze", 0.02)}),
    "outside copies": Profile(mode="outside", repeated=0.6, in_order=0.3, burst=0.2),
    "frozen": Profile(
        turns=400, focus={"effect": ("freeze", 0.3), "claim": ("freeze", 0.2), "write_page": ("freeze", 0.1)}
    ),
    "dead letters": Profile(channel=0.08, kinds=WELL, delivery_limit=1),
    "closes": Profile(
        kinds=WELL | {"failing": 2.0},
        accounts=2,
        page_size=2,
        eager=10,
        operator_acts=("cancel", "rerun"),
        focus={"close_write": ("freeze", 0.5)},
    ),
    "losses": Profile(lost=0.3, operator=False),
    "cancels": Profile(
        eager=8,
        operator_acts=("cancel", "cancel", "rerun"),
        focus={"cancel_pending": ("freeze", 0.4), "start_rows": ("freeze", 0.1)},
    ),
    "cancels alone": Profile(operator_acts=("cancel", "rerun"), channel=0.05),
    "outside cancels": Profile(mode="outside", operator_acts=("cancel", "cancel", "rerun")),
    "overdue": Profile(kinds={"stuck": 1.0}, accounts=3, on_finish_within="stop", operator=False, jump=0),
    "reruns": Profile(
        mode="outside",
        eager=6,
        operator_acts=("rerun", "rerun", "cancel"),
        kinds=MIXED | {"failing": 4.0},
        focus={"called": ("freeze", 0.1), "mark_published": ("freeze", 0.2)},
    ),
    "peaceful reruns": replace(
        PEACE,
        refused=0,
        repeated=0,
        jump=0,
        steps=(0.01, 0.5, 1),
        time=0.1,
        head_start=55,
        eager=6,
        operator_acts=("rerun",),
        kinds={"failing": 2, "well": 1},
    ),
    "nobody works": replace(
        PEACE,
        kinds=WELL,
        accounts=8,
        workers=0,
        refused=0,
        repeated=0,
        operator=False,
        turns=400,
    ),
    "slow peace": replace(
        PEACE,
        refused=0,
        repeated=0,
        jump=0,
        steps=(0.5, 2, 4),
        time=0.1,
        head_start=45,
        operator=False,
        kinds={"flaky": 1.0},
        accounts=5,
        workers=1,
        turns=500,
    ),
    "narrow": Profile(mode="chunked", accounts=14, page_size=5, bound=3, workers=2),
    "late": Profile(kinds=WELL, accounts=3, jump=0.2, jumps=(300, 900, 1800, 4000), operator_acts=("cancel", "rerun")),
    "broken in chunks": Profile(mode="chunked", kinds=BROKEN),
    "narrow outage": replace(
        PEACE,
        mode="chunked",
        kinds=WELL,
        accounts=14,
        page_size=5,
        bound=3,
        workers=0,
        refused=0,
        repeated=0,
        operator=False,
        turns=400,
    ),
    "queue one": Profile(
        kinds=WELL, accounts=3, overlap="queue_one", jump=0.3, jumps=BESIDE, operator_acts=EVERY_ACT, eager=2
    ),
    "cancel previous": Profile(
        kinds=WELL, accounts=4, overlap="cancel_previous", jump=0.3, jumps=BESIDE, operator_acts=EVERY_ACT, eager=2
    ),
    "cancel previous outside": Profile(
        mode="outside", accounts=4, overlap="cancel_previous", jump=0.3, jumps=BESIDE, operator_acts=("rerun", "fire")
    ),
    "allow": Profile(accounts=4, overlap="allow", jump=0.3, jumps=BESIDE, operator_acts=EVERY_ACT),
    "every instant": Profile(kinds=WELL, accounts=2, catch_up="all", jump=0.2, jumps=(300, 900, 1800, 4000)),
    "every instant queued": Profile(
        kinds=WELL, accounts=2, catch_up="all", overlap="queue_one", jump=0.2, jumps=(900, 1800, 4000)
    ),
    "every instant allowed": Profile(
        kinds=WELL, accounts=2, catch_up="all", overlap="allow", overlap_by="account", jump=0.2, jumps=(900, 4000)
    ),
    "by account": Profile(
        accounts=4, overlap="allow", overlap_by="account", jump=0.3, jumps=BESIDE, operator_acts=RUN_AGAIN, eager=4
    ),
    "by account in chunks": Profile(
        mode="chunked",
        accounts=5,
        overlap="allow",
        overlap_by="account",
        jump=0.3,
        jumps=BESIDE,
        operator_acts=RUN_AGAIN,
        eager=4,
    ),
    "by account set based": Profile(
        mode="set_based", accounts=5, overlap="allow", overlap_by="account", jump=0.3, jumps=BESIDE, kinds=SET_MIXED
    ),
    "by account outside": Profile(
        mode="outside",
        accounts=4,
        overlap="allow",
        overlap_by="account",
        jump=0.3,
        jumps=BESIDE,
        operator_acts=RUN_AGAIN,
        eager=4,
    ),
    "pauses": Profile(
        kinds=WELL,
        accounts=2,
        workers=1,
        jump=0.3,
        jumps=(100, 300, 900, 1800),
        operator_acts=("pause", "pause", "hold", "resume", "resume", "fire"),
        eager=8,
    ),
    "backfills": Profile(
        kinds=WELL,
        accounts=2,
        workers=1,
        catch_up="skip",
        jump=0.2,
        jumps=(300, 900, 1800, 4000),
        operator_acts=("backfill", "backfill", "end backfill", "pause", "resume", "resume"),
        eager=6,
    ),
    "backfills beside": Profile(
        kinds=WELL,
        accounts=2,
        catch_up="skip",
        overlap="allow",
        jump=0.2,
        jumps=(300, 900, 1800, 4000),
        operator_acts=("backfill", "backfill", "end backfill"),
        eager=6,
    ),
    "every worker": Profile(
        mode="every",
        accounts=0,
        coordination=("every", "every"),
        catch_up="skip",
        workers=3,
        triggers=2,
        turns=700,
        jump=0.2,
        jumps=(100, 300, 900),
        operator_acts=("pause", "resume", "resume", "cancel"),
        focus={"effect": ("freeze", 0.2), "open_own": ("crash", 0.1)},
    ),
    "run again": Profile(eager=6, operator_acts=("rerun", "rerun", "cancel"), kinds=MIXED | {"failing": 4.0}),
}


# Where the crashes of an arrow are hunted: one falls on every second crossing of it, and hardly any elsewhere.
HUNTED_IN = {
    "register → plan": "revisions",
    "plan → claim": "revisions",
    "claim → page": "claims",
    "decide → commit": "late",
    "take over → page": "pages",
    "page → page": "pages",
    "page → seal": "claims",
    "seal → close": "claims",
    "failed fan-out → take over": "never read",
    "rows → publish": "single",
    "publish → mark": "single",
    "mark → publish": "narrow",
    "deliver → start": "single",
    "start → execute": "chunked",
    "execute → settle": "outside",
    "settle → commit": "set based",
    "settle → ack": "single",
    "settle → retry": "run again",
    "retry → mark": "run again",
    "mark → ack": "run again",
    "start alone → start": "poison",
    "missed → hand on": "copies",
    "hand on → ack": "copies",
    "give up → dead letter": "killers",
    "dead letter → bury": "killers",
    "bury → ack": "killers",
    "publish alone → ack": "dead letters",
    "settle → close": "single",
    "close → next": "claims",
    "sweep: expired → publish": "outside frozen",
    "sweep: lost → publish": "losses",
    "sweep: rows cancelled → close": "cancels",
    "sweep: deadline → cancel rows": "overdue",
    "cancel → close": "cancels",
    "re-run → publish": "run again",
}


def hunting(arrow: str) -> Profile:
    """Give the runs in which an arrow's crashes are hunted."""
    profile = PROFILES[HUNTED_IN[arrow]]
    return replace(
        profile,
        hunted=arrow,
        crash=0.001,
        focus={step: one for step, one in profile.focus.items() if one[0] != "crash"},
    )
