"""Judging sound declarations: what is valid, and will hurt some night, with what to write instead. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from shared.bounds import written
from shared.exclusions import Calendar
from shared.interval import shortest_interval
from shared.job import Job, PerAccount
from shared.job_faults import duration_text
from shared.limits import ACK_TIMEOUT, BEAT_INTERVAL, CHUNK_BUDGET
from shared.schedule_except import Except
from trigger.lint_clocks import clock_findings

Level = Literal["error", "warning", "note"]

# A calendar must reach as far as a preview does.
AHEAD = timedelta(days=396)
_RENEWALS = 3


@dataclass(frozen=True, slots=True)
class Judged:
    """One finding: how bad, where, why, and what to write instead ('' where the why says it).

    An `error` refuses the deploy, a `warning` does with `--strict`, and a `note` tells of a decision that was made.
    """

    level: Level
    where: str
    why: str
    instead: str = ""

    def __str__(self) -> str:
        """Give it as one line."""
        better = "valid" if self.level == "error" else "instead"
        return f"{self.where}: {self.why}" + (f"; {better}: {self.instead}" if self.instead else "")


@dataclass(frozen=True, slots=True)
class LastRuns:
    """What a job's last finished runs took: how many there were, and the longest of them."""

    count: int
    longest: timedelta


def judge_job(job: Job, now: datetime, *, prefetch: int) -> Iterator[Judged]:
    """Judge a sound job by its declaration; `prefetch` is how many messages wait at a worker beside those that run."""
    for doubt in job.schedule.warnings():
        yield Judged("warning", f"{job.place}: schedule", doubt.why, doubt.instead)
    clocks = job.schedule.clocks
    if clocks is not None:
        for found in clock_findings(clocks, now):
            yield Judged("warning" if found.loses else "note", f"{job.place}: schedule", found.why, found.instead)
    yield from _ended(job, now)
    yield from _calendar_ends(job, now)
    if job.has_messages:
        yield from _held_too_long(job, prefetch)


def judge_last_runs(job: Job, runs: LastRuns | None, now: datetime) -> Iterator[Judged]:
    """Compare a job's interval with what its last runs took."""
    interval = shortest_interval(job.schedule, now)
    if runs is None or interval is None or runs.longest <= interval:
        return
    took = f"the longest of its last {runs.count} runs took {_rounded(runs.longest)}"
    problem = f"is due every {duration_text(interval)}, and {took}"
    yield Judged("warning", f"{job.place}: schedule", problem, "a longer interval, or less work in a run")


def judge_leases(
    claim_lease: timedelta, outside_lease: timedelta, tick_interval: timedelta, sweep_interval: timedelta
) -> Iterator[Judged]:
    """Judge leases by how often their holders can say that they are alive."""
    beat = {"the heartbeat": BEAT_INTERVAL}
    passes = {"MATINS_TICK_INTERVAL": tick_interval, "MATINS_SWEEP_INTERVAL": sweep_interval}
    for name, lease, intervals in (
        ("MATINS_CLAIM_LEASE", claim_lease, passes | beat),
        ("MATINS_OUTSIDE_LEASE", outside_lease, beat),
    ):
        slowest = max(intervals, key=lambda one: intervals[one])
        least = _RENEWALS * intervals[slowest]
        if lease < least:
            problem = (
                f"is {duration_text(lease)}, less than three times {slowest} ({duration_text(intervals[slowest])})"
            )
            why = f"{problem}: one that is lost takes work from a process that is well"
            yield Judged("warning", name, why, f"at least {duration_text(least)}")


def _ended(job: Job, now: datetime) -> Iterator[Judged]:
    if job.schedule.next_after(now) is None:
        last = job.schedule.previous_before(now)
        told = f"has ended: its last instant was {written(last)}" if last else "names no instant that is still to come"
        yield Judged("warning", f"{job.place}: schedule", told, "new instants, or retire the job")


def _calendar_ends(job: Job, now: datetime) -> Iterator[Judged]:
    exclude = job.schedule.exclude if isinstance(job.schedule, Except) else ()
    for one in exclude:
        if isinstance(one, Calendar) and one.last < (now + AHEAD).date():
            why = f"calendar {one.name} ends on {one.last}, and leaves nothing out behind it"
            yield Judged("warning", f"{job.place}: schedule", why, "the days of the next year as well")


def _held_too_long(job: Job, prefetch: int) -> Iterator[Judged]:
    """Compare the time that a message may spend at a worker with the broker's patience."""
    handler = job.handler
    batched = isinstance(handler, PerAccount) and handler.settle == "batched"
    longest = handler.timeout
    if handler.chunk_size > 1 or batched:
        most = CHUNK_BUDGET + handler.timeout
        one_by_one = isinstance(handler, PerAccount) and not batched
        longest = min(most, handler.chunk_size * handler.timeout) if one_by_one else most
    rounds = 2 if batched else 1 + -(-prefetch // handler.concurrency)
    if rounds * longest > ACK_TIMEOUT:
        why = (
            f"a message may be at a worker for {duration_text(rounds * longest)}: {prefetch} wait beside the "
            f"{handler.concurrency} that run, {duration_text(longest)} each at most; RabbitMQ takes a message back "
            f"after {duration_text(ACK_TIMEOUT)}"
        )
        instead = "a shorter timeout, a smaller MATINS_PREFETCH, or a longer consumer_timeout in RabbitMQ"
        yield Judged("warning", f"{job.place}: handler", why, instead)


def _rounded(duration: timedelta) -> str:
    return duration_text(timedelta(seconds=round(duration.total_seconds())))
