"""What can be done about the broker's messages: publishing parked ones again.

It needs the broker's operator, whom a trigger is not: a console of its own may be. Old queues are taken away at the
command line alone, since that needs the user that migrates.
"""

from collections.abc import Sequence
from typing import Final

from shared.fleet import read_topology
from shared.terminal import NotDone, Refused, given
from shared.topology import Topology
from trigger.console.acts import Act, Asking, Doing, Field, choice_given
from trigger.parked import list_parked
from trigger.redrive import redrive

LISTED: Final = 50
MOST_CHOSEN: Final = 500
_WHICH = Field(
    "which",
    "Which messages",
    "one of",
    (("all", "all that are parked now"), ("chosen", "those below")),
    usual="all",
)
_MESSAGES = Field("message", "Messages", "lines", hint="an id on each line, as they are listed")


def _topology(doing: Doing) -> Topology:
    settings = doing.place.settings
    if not given(settings, "broker_url"):
        raise Refused("MATINS_BROKER_URL is not set at this console")
    return Topology(settings.prefix, settings.environment, frozenset(), settings.delays, settings.delivery_limit)


def _chosen(doing: Doing) -> tuple[str, ...] | None:
    which = choice_given(doing.form, _WHICH)
    lines = [line.strip() for text in doing.form.all(_MESSAGES.name) for line in text.split("\n") if line.strip()]
    if bool(lines) != (which == "chosen"):
        raise Refused("--message: goes with “those below”, and with that alone")
    if len(lines) > MOST_CHOSEN:
        raise Refused(f"--message: at most {MOST_CHOSEN} at once")
    return tuple(lines) or None


async def _ask_redrive(doing: Doing) -> Asking:
    """Say what parked messages would do; to look counts as a delivery of each, and is what somebody has asked for."""
    chosen, topology = _chosen(doing), _topology(doing)
    recorded = await read_topology(doing.session) or {}
    url, seconds = doing.place.settings.secret("broker_url"), doing.place.settings.broker_timeout.total_seconds()
    found, count = await list_parked(doing.session, url, topology, recorded, LISTED, timeout=seconds)
    rows = [
        (one.message or "without an id", one.occurrence or "-", ", ".join(one.accounts), one.died_of, one.would)
        for one in found
        if chosen is None or one.message in chosen
    ]
    remarks = [f"the first {LISTED} of {count} were looked at"] if count > LISTED else []
    named = "all parked messages" if chosen is None else f"{len(chosen)} parked messages"
    return Asking(
        f"Publish {named} again? Accounts that still wait for one are run; none has a second effect.",
        ("Message", "Of", "Accounts", "Died of", "What it would do"),
        rows,
        remarks,
    )


async def _redrive(doing: Doing) -> Sequence[str]:
    topology, chosen = _topology(doing), _chosen(doing)
    url, seconds = doing.place.settings.secret("broker_url"), doing.place.settings.broker_timeout.total_seconds()
    done = await redrive(doing.session, url, topology, chosen, doing.order, timeout=seconds)
    if done.troubles and not done.ended("redriven"):
        raise NotDone("\n".join(done.troubles))
    return [done.told, *done.troubles]


REDRIVE: Final = Act(
    "redrive",
    "/fleet/redrive",
    "Redrive",
    "Publishes parked messages again. What each would do is shown first.",
    _redrive,
    fields=(_WHICH, _MESSAGES),
    ask=_ask_redrive,
)
ACTS: Final = (REDRIVE,)
