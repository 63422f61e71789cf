"""What can be done about an alert: saying that somebody knows, and having it told to nobody for a time."""

from collections.abc import Sequence
from typing import Final

from trigger.alert_orders import acknowledge, silence, unsilence
from trigger.alert_standing import read_reference
from trigger.console.acts import FOR, UNTIL, Act, Doing, end_given


async def _acknowledge(doing: Doing) -> Sequence[str]:
    return [(await acknowledge(doing.session, read_reference(doing.subject), doing.order)).said]


async def _silence(doing: Doing) -> Sequence[str]:
    end = end_given(doing.form)
    return [(await silence(doing.session, read_reference(doing.subject), end, doing.order)).said]


async def _unsilence(doing: Doing) -> Sequence[str]:
    return [(await unsilence(doing.session, read_reference(doing.subject), doing.order)).said]


ACKNOWLEDGE: Final = Act(
    "acknowledge",
    "/alerts/{alert}/acknowledge",
    "Acknowledge",
    "Somebody knows of it and sees to it: it is told no more.",
    _acknowledge,
    what="alert",
)
SILENCE: Final = Act(
    "silence",
    "/alerts/{alert}/silence",
    "Silence",
    "It is told to nobody for a time, 7 days at most; what is not over then is told again.",
    _silence,
    what="alert",
    fields=(FOR, UNTIL),
)
UNSILENCE: Final = Act(
    "unsilence",
    "/alerts/{alert}/unsilence",
    "Unsilence",
    "Ends the silence: it is told again at the watch's next look.",
    _unsilence,
    what="alert",
)
ACTS: Final = (ACKNOWLEDGE, SILENCE, UNSILENCE)
