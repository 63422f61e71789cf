"""Everything that leaves a row in the audit trail, each done through the product, on a database of its own.

An act's `row` says what its row must hold: who ordered it and as what (`by`: None where the instance acted by itself),
and the names that its detail must have.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from schemas.occurrence import Identity
from shared.exclusions import Dates
from shared.job import Cron, Except, Job, RunsElsewhere
from shared.migrate import enter_environment
from shared.postgres import Database, Session
from shared.restore import hold
from shared.watch import Finding
from shared.watch_alerts import Alerts
from tests.integration.audit.trail import seal_all
from tests.integration.operate.night import ORDER, closed_night
from tests.integration.trigger.support import (
    DAY,
    DUE,
    HOUR,
    MINUTE,
    claimant,
    claimed,
    decisions,
    fanned_out,
    fill,
    job_at,
    planned,
)
from tests.integration.trigger.sweeps import sweeping
from tests.support.alerts import open_alert
from trigger.alert_orders import acknowledge, silence, unsilence
from trigger.alert_standing import read_reference
from trigger.backfill import Range, backfill, cancel_backfill
from trigger.backfill_pass import advance_backfill
from trigger.check_in import CheckIn, check_in, close_silent
from trigger.check_in_rules import Event
from trigger.claim import claim_due
from trigger.claim_outcome import Claimant
from trigger.deploy_marker import mark_deploy
from trigger.fan_out import FanOut, fan_out, release, take_over
from trigger.forget import forget
from trigger.maintenance import add_maintenance, end_maintenance
from trigger.operate import NO_LEASE, Choice, cancel, fire, rerun
from trigger.outside_call import Call, answer
from trigger.pauses import pause, resume, retire, unretire
from trigger.prune import prune
from trigger.prune_audit import prune_audit
from trigger.queues import AUDIT_QUEUE
from trigger.reconcile import release as release_hold
from trigger.reconcile import restored
from trigger.redrive import AUDIT_REDRIVE
from trigger.sweep import sweep_pass

NIGHTLY = Identity("nightly", DUE)
OPERATOR = (ORDER.actor, "operator")
CALLER = ("cron", "caller")
FOREIGN = RunsElsewhere("report", Cron("0 2 * * *"), start_within=MINUTE, finish_within=HOUR, heard_within=2 * HOUR)
Do = Callable[[Database, Session], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Act:
    """One act: how it is done, who orders it (None: the instance by itself), and states before and after."""

    kind: str
    do: Do
    by: tuple[str, str] | None = None
    before: Any = None
    after: Any = None


async def due(session: Session, job: Job, *moments: datetime) -> None:
    """Plan a job before DUE, and decide what is due at each moment."""
    await planned(session, job, DUE - DAY)
    for moment in moments:
        revision = await planned(session, job, moment)
        await claim_due(session, job, revision, claimant(), now=moment)


def hourly(overlap: str) -> Job:
    return job_at("0 * * * *", decisions=decisions(overlap=overlap))


async def a_claim(_: Database, session: Session) -> None:
    await due(session, job_at(), DUE)


async def a_fire(_: Database, session: Session) -> None:
    await planned(session, job_at(), DUE - DAY)
    await fire(session, NIGHTLY, ORDER, now=DUE)


async def a_second_fire(database: Database, session: Session) -> None:
    await a_fire(database, session)
    await fire(session, NIGHTLY, ORDER, now=DUE)


async def a_call(_: Database, session: Session) -> None:
    await planned(session, job_at(), DUE - DAY)
    await answer(session, Call("cron", "nightly", "key 0123abcd"), Claimant("one", "north", NO_LEASE), now=DUE)


async def a_second_call(database: Database, session: Session) -> None:
    await a_call(database, session)
    await answer(session, Call("cron", "nightly", "key 0123abcd"), Claimant("one", "north", NO_LEASE), now=DUE)


async def reported(session: Session, event: Event, now: datetime) -> None:
    await check_in(session, CheckIn("report", event, "cron", "key 0123abcd", "one"), now=now)


async def a_check_in(_: Database, session: Session) -> None:
    await planned(session, FOREIGN, DUE - DAY)
    await reported(session, "start", DUE)


async def an_end_that_is_reported(database: Database, session: Session) -> None:
    await a_check_in(database, session)
    await reported(session, "fail", DUE)


async def a_silence_elsewhere(database: Database, session: Session) -> None:
    await a_check_in(database, session)
    await close_silent(session, "one", now=DUE + DAY)


async def a_takeover(_: Database, session: Session) -> None:
    await claimed(session, job_at())
    await take_over(session, ["nightly"], claimant("two"), now=DUE + HOUR)


async def a_release(_: Database, session: Session) -> None:
    await release(session, await claimed(session, job_at()), now=DUE)


async def a_seal(database: Database, session: Session) -> None:
    await fill(session, 2)
    job = job_at()
    await fanned_out(database, job, await claimed(session, job))


async def a_close(_: Database, session: Session) -> None:
    await closed_night(session)


async def a_failed_fan_out(database: Database, session: Session) -> None:
    job = job_at()
    await fan_out(FanOut(database, job, claimant(), now=DUE), await claimed(session, job))


async def a_deadline(database: Database, session: Session) -> None:
    await fill(session, 2)
    job = job_at(on_finish_within="stop")
    await fanned_out(database, job, await claimed(session, job))
    await sweep_pass(sweeping(database, job, now=DUE + 4 * HOUR))


async def an_overlap(_: Database, session: Session) -> None:
    await due(session, hourly("skip"), DUE, DUE + HOUR)


async def a_miss(_: Database, session: Session) -> None:
    await due(session, job_at(), DUE + 23 * HOUR)


async def a_coalescence(_: Database, session: Session) -> None:
    await due(session, hourly("skip"), DUE + 2 * HOUR)


async def a_wait(_: Database, session: Session) -> None:
    await due(session, hourly("queue_one"), DUE, DUE + HOUR)


async def a_cancelled_previous(_: Database, session: Session) -> None:
    await due(session, hourly("cancel_previous"), DUE, DUE + HOUR)


async def a_moved_schedule(_: Database, session: Session) -> None:
    await planned(session, job_at(), DUE - HOUR)
    await planned(session, job_at("30 3 * * *"), DUE - HOUR)


async def a_schedule_moved_back(database: Database, session: Session) -> None:
    await a_moved_schedule(database, session)
    await planned(session, job_at(), DUE - HOUR)


async def a_refused_instant(_: Database, session: Session) -> None:
    await due(session, job_at(), DUE)
    await planned(session, job_at("30 3 * * *"), DUE + MINUTE)


async def a_left_out_day(_: Database, session: Session) -> None:
    schedule = Except(Cron("0 2 * * *"), [Dates([DUE.date().isoformat()])])
    await planned(session, replace(job_at(), schedule=schedule), DUE - DAY)


async def a_rerun(_: Database, session: Session) -> None:
    night, _closed = await closed_night(session)
    await rerun(session, night.identity, Choice(), ORDER)


async def a_cancel(_: Database, session: Session) -> None:
    await claimed(session, job_at())
    await cancel(session, NIGHTLY, ORDER, now=DUE)


async def a_cancel_of_what_waits(_: Database, session: Session) -> None:
    await planned(session, job_at(), DUE - DAY)
    await cancel(session, NIGHTLY, ORDER, now=DUE - HOUR)


async def a_pause(_: Database, session: Session) -> None:
    await planned(session, job_at(), DUE - DAY)
    await pause(session, "nightly", ORDER, now=DUE - HOUR)


async def a_resume(database: Database, session: Session) -> None:
    await a_pause(database, session)
    await resume(session, "nightly", ORDER, now=DUE + HOUR)


async def a_retirement(_: Database, session: Session) -> None:
    await planned(session, job_at(), DUE - DAY)
    await retire(session, "nightly", ORDER, now=DUE - HOUR)


async def its_way_back(database: Database, session: Session) -> None:
    await a_retirement(database, session)
    await unretire(session, "nightly", ORDER, now=DUE - HOUR)


async def a_pause_after_failures(_: Database, session: Session) -> None:
    job = job_at(pause_after_failures=1)
    await due(session, job, DUE)
    await session.execute(
        """update matins.occurrence set state = 'failed', closed_at = $1, report = '{}', total = 0, succeeded = 0,
                  failed = 0, dead = 0, cancelled = 0, lease_until = null where state = 'claimed'""",
        DUE + MINUTE,
    )
    revision = await planned(session, job, DUE + DAY)
    await claim_due(session, job, revision, claimant(), now=DUE + DAY)


async def a_backfill(_: Database, session: Session) -> int:
    job = job_at(decisions=decisions(catch_up="skip", catch_up_within=HOUR))
    await planned(session, job, DUE - 3 * DAY)
    await planned(session, job, DUE + HOUR)
    await session.execute("update matins.occurrence set state = 'missed', reason = 'r' where scheduled_at <= $1", DUE)
    asked = Range(DUE - 2 * DAY, DUE)
    number = (await backfill(session, "nightly", asked, ORDER, now=DUE + HOUR)).id
    assert number is not None
    return number


async def a_cancelled_backfill(database: Database, session: Session) -> None:
    await cancel_backfill(session, await a_backfill(database, session), ORDER, now=DUE + HOUR)


async def a_finished_backfill(database: Database, session: Session) -> None:
    await a_backfill(database, session)
    await session.execute("update matins.occurrence set state = 'skipped', reason = 'r' where origin = 'backfill'")
    await advance_backfill(session, "nightly", 1, claimant(), now=DUE + HOUR)


async def named(session: Session) -> None:
    await enter_environment(session, "test", create=True)


async def a_hold_by_hand(_: Database, session: Session) -> None:
    await named(session)
    await restored(session, ORDER, None)


async def a_hold(_: Database, session: Session) -> None:
    await named(session)
    await hold(session, "the database was put back", None, instance="one")


async def its_release(database: Database, session: Session) -> None:
    await a_hold(database, session)
    await release_hold(session, ORDER)


async def a_retired_queue(_: Database, session: Session) -> None:
    # The command needs a broker, and is driven with one elsewhere.
    await session.execute(AUDIT_QUEUE, ORDER.instance, ORDER.actor, ORDER.reason, {"queue": "old"})


async def a_redriven_message(_: Database, session: Session) -> None:
    # The command needs a broker, and is driven with one elsewhere.
    await session.execute(AUDIT_REDRIVE, "nightly", None, ORDER.instance, ORDER.actor, ORDER.reason, {"message": "one"})


async def a_prune(_: Database, session: Session) -> None:
    await named(session)
    await prune(session, datetime(2025, 1, 1, tzinfo=UTC), ORDER)


async def a_pruned_trail(database: Database, session: Session) -> None:
    await a_hold(database, session)
    await seal_all(session)
    await prune_audit(session, await session.fetchval("select clock_timestamp()"), ORDER)


async def a_forgotten_account(_: Database, session: Session) -> None:
    await forget(session, "4711", ORDER)


async def an_acknowledged_alert(_: Database, session: Session) -> None:
    await open_alert(session, "not_claimed", str(NIGHTLY))
    await acknowledge(session, read_reference(f"not_claimed:{NIGHTLY}"), ORDER, now=DUE)


async def a_silenced_alert(_: Database, session: Session) -> None:
    await open_alert(session, "not_claimed", str(NIGHTLY))
    await silence(session, read_reference(f"not_claimed:{NIGHTLY}"), HOUR, ORDER, now=DUE)


async def an_alert_heard_again(database: Database, session: Session) -> None:
    await a_silenced_alert(database, session)
    await unsilence(session, read_reference(f"not_claimed:{NIGHTLY}"), ORDER, now=DUE)


async def a_maintenance(_: Database, session: Session) -> int:
    await planned(session, job_at(), DUE - DAY)
    return (await add_maintenance(session, "nightly", DUE, HOUR, ORDER, now=DUE)).id


async def its_end(database: Database, session: Session) -> None:
    await end_maintenance(session, await a_maintenance(database, session), ORDER, now=DUE + MINUTE)


async def a_deploy_marker(_: Database, session: Session) -> None:
    await mark_deploy(session, "billing-api", "7.1", DUE, ORDER.actor, ORDER.reason)


async def _watch(session: Session, *found: Finding) -> None:
    async with session.transaction():
        await Alerts("test", "one", HOUR).apply(session, found, ["job_vanished"], now=DUE)


async def an_alert(_: Database, session: Session) -> None:
    await _watch(session, Finding("job_vanished", "nightly", "no process declares it", "nightly"))


async def its_close(database: Database, session: Session) -> None:
    await an_alert(database, session)
    await _watch(session)


ACTS: dict[str, Act] = {
    "a claim": Act("claim", a_claim, None, "expected", "claimed"),
    "a fire by hand": Act("claim", a_fire, OPERATOR, "expected", "claimed"),
    "a second fire": Act("called", a_second_fire, OPERATOR),
    "a call": Act("claim", a_call, CALLER, "expected", "claimed"),
    "a second call": Act("called", a_second_call, CALLER),
    "a check-in": Act("check_in", a_check_in, CALLER, "expected", "claimed"),
    "an end that is reported": Act("check_in", an_end_that_is_reported, CALLER, "claimed", "failed"),
    "a run elsewhere that fell silent": Act("closed", a_silence_elsewhere, None, "claimed", "failed"),
    "a takeover": Act("takeover", a_takeover),
    "a claim that is given back": Act("released", a_release),
    "a seal": Act("sealed", a_seal),
    "a close": Act("closed", a_close),
    "a failed fan-out": Act("fan_out_failed", a_failed_fan_out),
    "a deadline": Act("ending", a_deadline),
    "a skip": Act("skipped", an_overlap, None, "expected", "skipped"),
    "a miss": Act("missed", a_miss, None, "expected", "missed"),
    "a coalescence": Act("coalesced", a_coalescence, None, "expected", "coalesced"),
    "a wait": Act("waits", a_wait),
    "a cancelled previous one": Act("cancel", a_cancelled_previous, None, None, "ending"),
    "a moved schedule": Act("superseded", a_moved_schedule, None, "expected", "skipped"),
    "a schedule that is moved back": Act("expected", a_schedule_moved_back, None, "skipped", "expected"),
    "an instant whose work was claimed": Act("superseded", a_refused_instant, None, None, "skipped"),
    "a day that is left out": Act("skipped", a_left_out_day, None, None, "skipped"),
    "a definition": Act("definition", a_moved_schedule, None, ..., ...),
    "a re-run": Act("rerun", a_rerun, OPERATOR, "partial", "running"),
    "a cancel": Act("cancel", a_cancel, OPERATOR, "claimed", "ending"),
    "a cancel of what waits": Act("cancel", a_cancel_of_what_waits, OPERATOR, "expected", "skipped"),
    "a pause": Act("pause", a_pause, OPERATOR, ..., ...),
    "a resume": Act("resume", a_resume, OPERATOR, ..., ...),
    "a retirement": Act("retire", a_retirement, OPERATOR, ..., ...),
    "a retirement's skips": Act("skipped", a_retirement, OPERATOR, "expected", "skipped"),
    "a retirement taken back": Act("unretire", its_way_back, OPERATOR, ..., ...),
    "a pause after failures": Act("pause", a_pause_after_failures, None, ..., ...),
    "a backfill": Act("backfill", a_backfill, OPERATOR),
    "what a backfill expects": Act("expected", a_backfill, OPERATOR),
    "a cancelled backfill": Act("backfill_cancelled", a_cancelled_backfill, OPERATOR, "active", "cancelled"),
    "a finished backfill": Act("backfill_done", a_finished_backfill, None, "active", "done"),
    "a hold by hand": Act("hold", a_hold_by_hand, OPERATOR),
    "a hold": Act("hold", a_hold),
    "a release": Act("release", its_release, OPERATOR),
    "a redriven message": Act("redrive", a_redriven_message, OPERATOR),
    "a retired queue": Act("queue_retired", a_retired_queue, OPERATOR),
    "a prune": Act("prune", a_prune, OPERATOR, None, "2025-01-01T00:00:00+00:00"),
    "a pruned trail": Act("audit_pruned", a_pruned_trail, OPERATOR, 0, 1),
    "a forgotten account": Act("account_forgotten", a_forgotten_account, OPERATOR),
    "an acknowledgement": Act("acknowledge", an_acknowledged_alert, OPERATOR, ..., ...),
    "a silence": Act("silence", a_silenced_alert, OPERATOR, ..., ...),
    "the end of a silence": Act("unsilence", an_alert_heard_again, OPERATOR, ..., ...),
    "a maintenance": Act("maintenance_add", a_maintenance, OPERATOR, None, ...),
    "the end of a maintenance": Act("maintenance_end", its_end, OPERATOR, ..., ...),
    "a deploy marker": Act("deploy_marked", a_deploy_marker, OPERATOR),
    "an alert": Act("alert_opened", an_alert),
    "the end of an alert": Act("alert_closed", its_close),
}
