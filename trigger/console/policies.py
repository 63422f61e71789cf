"""A job's recorded declaration in sentences: what was decided, and what that means when it comes to it. Pure.

A value that this release does not know, since a later one has recorded it, is shown as it stands.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trigger.console.policies_schedule import schedule_policies
from trigger.console.recorded import Part, Policy, Recorded, share, text, whole

COORDINATION: Final = {
    "claim": "Every trigger attempts it, and one of them wins.",
    "leader": "One trigger leads, and attempts it alone; another leads once that one gets on no more.",
    "external": "Nothing here fires it: an outside scheduler calls for it in time.",
    "every": "Each worker runs an occurrence of its own, in its own process and without the broker.",
    "elsewhere": "Something else runs it, and checks in here: it starts, it succeeds, it fails.",
}
CATCH_UP: Final = {
    "latest": "If several instants fell due while nobody was there, the last one runs, and the others join it.",
    "all": "If several instants fell due while nobody was there, each of them runs, the oldest first.",
    "skip": "If nobody was there within start_within of an instant, it is skipped, and nothing makes up for it.",
}
OVERLAP: Final = {
    "skip": "If the instant before still runs, this one is skipped.",
    "queue_one": "If the instant before still runs, this one waits for its end; a later one takes its place.",
    "allow": "If the instant before still runs, this one runs beside it.",
    "cancel_previous": "If the instant before still runs, that one is cancelled, and this one starts once it is over.",
}
OVERLAP_BY: Final = {
    "job": "Of occurrences that run beside one another, each runs its accounts as they come.",
    "account": "Of occurrences that run beside one another, each account waits until it is done in those before.",
}
ON_FINISH_WITHIN: Final = {
    "alert": "What is not finished by then goes on, and an alert tells of it.",
    "stop": "What is not finished by then is stopped: it ends as partial, and names the accounts it did not touch.",
}
MODES: Final = {
    "PerAccount": "Its code is called for each account, in the transaction that settles the account.",
    "SetBased": "Its code is called for a chunk of accounts at a time, in the transaction that settles them.",
    "Outside": "Its code is called for each account, with no transaction held: what it does lies outside the database.",
    "EveryWorker": "Its code is called once in each worker, in the transaction that settles that worker's row.",
    "NotHere": "No worker has its code.",
}
SETTLE: Final = {
    "each": "Each message is settled in a transaction of its own.",
    "batched": "Messages that wait together share a transaction, each account in a savepoint of its own.",
}
# What it means that something has not begun in time, and that it is too late for it to begin at all.
_LATE: Final = {
    "claim": (
        "If nobody has claimed it {} after it was due, it is late: an alert tells of it.",
        "An instant that is later than {} is missed: it is recorded, and not run.",
    ),
    "external": (
        "If nobody has called for it {} after it was due, it is late: an alert tells of it.",
        "An instant that nobody has called for within {} is missed: it is recorded, and not run.",
    ),
    "every": (
        "If a worker has not begun it {} after it was due, that worker has missed it.",
        "An instant that is later than {} is missed by a worker, however busy it was.",
    ),
    "elsewhere": (
        "If it has not checked in {} after it was due, it is late: an alert tells of it.",
        "What is not heard of within {} is over: missed if it never started, else failed.",
    ),
}
_NO_CATCH_UP: Final = {
    "external": "Nothing makes up by itself for an instant that was not called for.",
    "every": "Nothing makes up for an instant that passed while a worker was busy, or away.",
    "elsewhere": "Nothing here makes up for what did not run there.",
}
_ACCOUNTS: Final = (
    "Its accounts are read once for each occurrence, in their order; by which query or generator, only its code says."
)


def policies_of(definition: Mapping[str, Any]) -> list[Part]:
    """Give a definition as parts with sentences; each value of it stands in one of them."""
    recorded = Recorded(definition)
    recorded.take("description")
    coordination = recorded.word("coordination")
    decisions, handler, backoff = (recorded.part(name) for name in ("decisions", "handler", "backoff"))
    schedule = recorded.part("schedule")
    parts = {
        "When it is due": [*schedule_policies(schedule), *_jitter(recorded)],
        "Who attempts it": [*recorded.worded("coordination", COORDINATION), *_region(recorded)],
        "What is late, and what was missed": list(_late(decisions, coordination)),
        "While it runs": [*_running(decisions, coordination), *_finish(decisions, recorded, coordination)],
        "What is done": [*_handler(handler, recorded)],
        "When it fails": [*_tries(recorded, backoff, coordination), *_failures(recorded)],
    }
    rest = [one for part in (recorded, schedule, decisions, handler, backoff) for one in part.rest()]
    parts["What this release does not know"] = rest
    return [Part(heading, tuple(policies)) for heading, policies in parts.items() if policies]


def _jitter(recorded: Recorded) -> Iterator[Policy]:
    told = "Each occurrence is put off by up to {}, always by the same time, so that not all jobs begin at once."
    return recorded.lasting("jitter", told.format)


def _region(recorded: Recorded) -> Iterator[Policy]:
    yield from recorded.of("region", lambda name: f"The triggers of the region {text(name)} attempt it first.")
    yield from recorded.lasting("region_delay", lambda delay: f"Those of other regions attempt it {delay} later.")


def _late(decisions: Recorded, coordination: str) -> Iterator[Policy]:
    """Say what becomes of what does not begin in time; who attempts it decides what catching up can mean."""
    late, over = _LATE.get(coordination, _LATE["claim"])
    yield from decisions.lasting("start_within", late.format)
    instead = _NO_CATCH_UP.get(coordination)
    yield from decisions.worded("catch_up", CATCH_UP if instead is None else dict.fromkeys(CATCH_UP, instead))
    yield from decisions.of("catch_up_at_most", lambda most: f"Of those no more than the last {whole(most)} run.")
    pace = "Each of those starts no sooner than {} after the one before."
    yield from decisions.lasting("catch_up_pace", pace.format)
    yield from decisions.lasting("catch_up_within", over.format)


def _running(decisions: Recorded, coordination: str) -> Iterator[Policy]:
    if coordination == "elsewhere":
        # Nothing is heard of how far it is.
        yield from decisions.worded("overlap", {"allow": "Whether two of it run at once is decided where it runs."})
        return
    yield from decisions.worded("overlap", OVERLAP)
    yield from decisions.worded("overlap_by", OVERLAP_BY)
    told = "If nothing of it is read, published or settled for {}, an alert tells that it stands still."
    if decisions.value("no_progress_within") is None:
        default = "twice the timeout of a call, and for ten minutes at least"
        yield Policy("decisions.no_progress_within is left out", told.format(default))
    yield from decisions.lasting("no_progress_within", told.format)


def _finish(decisions: Recorded, recorded: Recorded, coordination: str) -> Iterator[Policy]:
    since = "its start" if coordination == "elsewhere" else "its claim"
    yield from decisions.lasting("finish_within", lambda bound: f"It is to be finished within {bound} of {since}.")
    yield from recorded.worded("on_finish_within", ON_FINISH_WITHIN)


def _handler(handler: Recorded, recorded: Recorded) -> Iterator[Policy]:
    mode = handler.word("mode")
    if mode in {"PerAccount", "SetBased", "Outside"}:
        yield Policy("accounts are not recorded", _ACCOUNTS)
    yield from handler.worded("mode", MODES)
    yield from handler.of("function", lambda name: f"That code is {text(name)}.")
    yield from handler.lasting("timeout", lambda most: f"A call may take {most}.")
    if mode in {"EveryWorker", "NotHere"}:
        handler.take("concurrency", "chunk_size")
    yield from handler.of("concurrency", _at_once)
    yield from handler.of("chunk_size", _chunk)
    yield from handler.worded("settle", SETTLE)
    yield from handler.of("role", lambda name: f"It is called under the database role {text(name)}.")
    yield from handler.of("login", lambda name: f"Workers connect for it as another login, {text(name)}.")
    yield from handler.lasting("key_valid_for", _key)
    yield from recorded.of("queue", lambda name: f"Its messages go through the queue {text(name)}.")
    recorded.take("queue")


def _at_once(most: Any) -> str:
    if whole(most) == 1:
        return "A worker makes one call of it at a time."
    return f"A worker makes up to {most} calls of it at once."


def _chunk(size: Any) -> str:
    if whole(size) == 1:
        return "Each message carries one account."
    return f"Each message carries up to {size} accounts."


def _key(bound: str) -> str:
    return (
        f"Whoever it calls remembers an idempotency key for {bound}: run again later than that, an effect could happen "
        "twice, and it is refused until somebody has compared the books."
    )


def _tries(recorded: Recorded, backoff: Recorded, coordination: str) -> Iterator[Policy]:
    if coordination in {"every", "elsewhere"}:
        # Tried once for each instant, whatever stands there.
        recorded.take("max_tries", "partial_ok")
        backoff.take("first", "factor", "limit", "jitter")
        return
    once = recorded.value("max_tries") == 1
    yield from recorded.of("max_tries", _most_tries)
    if once:
        backoff.take("first", "factor", "limit", "jitter")
    yield from backoff.lasting("first", "The first wait before another try is {}.".format)
    yield from backoff.of("factor", lambda factor: f"Each further wait is {_factor(factor)} times as long.")
    yield from backoff.lasting("limit", "No wait is longer than {}.".format)
    yield from backoff.of("jitter", lambda part: f"Each wait is shortened at random, by up to {share(part)}.")
    yield from recorded.of("partial_ok", _partial_ok)


def _factor(factor: Any) -> str:
    if isinstance(factor, bool) or not float(factor) >= 1:
        raise ValueError(factor)
    return f"{float(factor):g}"


def _most_tries(most: Any) -> str:
    if whole(most) == 1:
        return "Each account is tried once: what fails has failed."
    return f"Each account is tried up to {most} times; then it has failed."


def _partial_ok(part: Any) -> str:
    told = share(part)
    if float(part) == 0:
        return "One account that fails makes an occurrence partial."
    return f"Up to {told} of the accounts may fail, and the occurrence still counts as succeeded."


def _failures(recorded: Recorded) -> Iterator[Policy]:
    return recorded.of("pause_after_failures", _pause)


def _pause(count: Any) -> str:
    if whole(count) == 1:
        return "After one failed occurrence the job is paused until a person resumes it."
    return f"After {count} failed occurrences in a row the job is paused until a person resumes it."
