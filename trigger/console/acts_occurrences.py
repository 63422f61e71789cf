"""What can be done with an occurrence: running accounts of it again, and cancelling it."""

from collections.abc import Sequence
from typing import Final

from shared.terminal import Refused
from trigger.console.acts import Act, Asking, Doing, Field, choice_given, yes_given
from trigger.firing import told_cancel, told_rerun
from trigger.operate import Choice, cancel, rerun
from trigger.reach import read_identity

MOST_ACCOUNTS: Final = 1000
_WHICH = Field(
    "which",
    "Which accounts",
    "one of",
    (("failed", "all that did not succeed"), ("chosen", "those below")),
    usual="failed",
)
_ACCOUNTS = Field("account", "Accounts", "lines", hint="one on each line, as they are written in its list")
_RECONCILED = Field("reconciled", "the provider's books were compared: an old idempotency key may be used again", "yes")
_NEW_KEY = Field("new-key", "new idempotency keys: a provider takes the accounts for new", "yes")


def _choice(doing: Doing) -> Choice:
    which = choice_given(doing.form, _WHICH)
    given = [line.strip("\r") for text in doing.form.all(_ACCOUNTS.name) for line in text.split("\n")]
    accounts = tuple(one for one in given if one.strip())
    if bool(accounts) != (which == "chosen"):
        raise Refused("--account: goes with “those below”, and with that alone")
    if len(accounts) > MOST_ACCOUNTS:
        raise Refused(f"--account: at most {MOST_ACCOUNTS} at once")
    return Choice(accounts or None, yes_given(doing.form, _RECONCILED.name), yes_given(doing.form, _NEW_KEY.name))


async def _ask_rerun(doing: Doing) -> Asking | None:
    if not _choice(doing).new_key:
        return None
    return Asking(
        f"Run accounts of {doing.subject} again with new keys? Effects outside the database that did happen will "
        "happen again."
    )


async def _rerun(doing: Doing) -> Sequence[str]:
    identity = read_identity(doing.subject)
    return [told_rerun(identity, await rerun(doing.session, identity, _choice(doing), doing.order))]


async def _ask_cancel(doing: Doing) -> Asking:
    return Asking(f"Cancel {doing.subject}? What of it is not started yet is left out; what runs settles first.")


async def _cancel(doing: Doing) -> Sequence[str]:
    identity = read_identity(doing.subject)
    _, state = await cancel(doing.session, identity, doing.order)
    return [told_cancel(identity, state)]


RERUN: Final = Act(
    "rerun",
    "/occurrences/{occurrence}/rerun",
    "Run again",
    "Runs accounts that did not succeed again, in its next generation. Those that succeeded stay as they are.",
    _rerun,
    fields=(_WHICH, _ACCOUNTS, _RECONCILED, _NEW_KEY),
    ask=_ask_rerun,
)
CANCEL: Final = Act(
    "cancel",
    "/occurrences/{occurrence}/cancel",
    "Cancel",
    "One that waits will not run; of one that runs, what is not started yet is left out.",
    _cancel,
    ask=_ask_cancel,
    dangerous=True,
)
ACTS: Final = (RERUN, CANCEL)
