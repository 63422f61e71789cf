"""Nights that fall, and operators at the real command line."""

from datetime import datetime, timedelta

from schemas.occurrence import Identity
from shared.timing import Occasion
from tests.soak.jobs import JOBS, NIGHT_JOBS, POISONED_JOB
from tests.soak.place import AWAY, Said
from tests.soak.plan import Event
from tests.soak.stage import Stage, pick
from trigger.plan import LOCK_JOB, insert_occasions

DAY = timedelta(days=1)
# Done; not done, or not well; refused, or cannot tell.
EXIT_CODES = (0, 1, 2)
LOOKS = (("status",), ("jobs",), ("occurrences", "--limit", "50"), ("doctor",))


async def night(stage: Stage, event: Event) -> str:
    """Let a job be due: a day after its last night, which lies in the past, so that it is due at once."""
    return await fall(stage, pick(NIGHT_JOBS, event))


async def poisoned_night(stage: Stage, event: Event) -> str:
    return await fall(stage, POISONED_JOB)


async def fall(stage: Stage, job: str) -> str:
    """Let the next night of a job fall; give its name, or why it cannot."""
    instant = stage.next_night(job)
    try:
        return await _plan(stage, job, instant)
    except AWAY as error:
        return f"{Identity(job, instant)}: {type(error).__name__}"


async def _plan(stage: Stage, job: str, instant: datetime) -> str:
    async with stage.place.session() as session, session.transaction():
        known = await session.fetchrow(LOCK_JOB, job)
        if known is None:
            return f"{job} is not known yet"
        now = await session.fetchval("select clock_timestamp()")
        occasions = [Occasion(instant, instant, instant - DAY)]
        await insert_occasions(session, job, known["revision"], occasions, now)
    return str(Identity(job, instant))


async def night_by_hand(stage: Stage, event: Event) -> str:
    """Let a job be due, and fire it at once: the schedule and the operator race."""
    job = pick(NIGHT_JOBS, event)
    said = await fall(stage, job)
    fired = await stage.place.command("fire", job, "--reason", "soak", "--json", "--no-wait")
    return f"{said}; {_told(fired)}"


async def fire(stage: Stage, event: Event) -> str:
    fired = await stage.place.command("fire", pick(JOBS, event), "--reason", "soak", "--json", "--no-wait")
    return _told(fired)


async def rerun(stage: Stage, event: Event) -> str:
    """Run what failed of a closed occurrence again, all of it or one account."""
    found = await _occurrence(stage, "o.state in ('partial', 'failed', 'cancelled')", event)
    if found is None:
        return "there was none"
    chosen: tuple[str, ...] = ("--failed",)
    if event.detail % 4 == 0 and (account := await _unsuccessful(stage, found)):
        chosen = ("--account", account)
    return _told(await stage.place.command("rerun", found, *chosen, "--reason", "soak", "--json", "--no-wait"))


async def cancel(stage: Stage, event: Event) -> str:
    """Cancel what runs, or what has just become due."""
    found = await _occurrence(stage, "o.state in ('claimed', 'running')", event)
    if found is None:
        found = await fall(stage, pick(NIGHT_JOBS, event))
    return _told(await stage.place.command("cancel", found, "--reason", "soak", "--json", "--no-wait"))


async def look(stage: Stage, event: Event) -> str:
    """Look, as an operator does while things are broken."""
    if event.detail % 5 == 4 and (found := await _occurrence(stage, "true", event)):
        return _told(await stage.place.command("show", found, "--json"))
    return _told(await stage.place.command(*LOOKS[event.detail % len(LOOKS)], "--json"))


async def mend(stage: Stage, event: Event) -> str:
    """Mend the data of the accounts that fail, or break them again."""
    mark = stage.place.folder / "mended"
    if mark.exists():
        mark.unlink()
        return "broken again"
    mark.touch()
    return "mended"


async def _occurrence(stage: Stage, condition: str, event: Event) -> str | None:
    try:
        async with stage.place.session() as session:
            rows = await session.fetch(
                f"select o.job, o.scheduled_at from matins.occurrence o where {condition} order by o.id desc limit 12"
            )
    except AWAY:
        return None
    if not rows:
        return None
    row = rows[int(event.whom * len(rows))]
    return str(Identity(row["job"], row["scheduled_at"]))


async def _unsuccessful(stage: Stage, occurrence: str) -> str | None:
    try:
        async with stage.place.session() as session:
            found: str | None = await session.fetchval(
                """select l.account from matins.ledger l join matins.occurrence o on o.id = l.occurrence_id
                    where o.job = $1 and l.state in ('failed', 'dead', 'cancelled') order by l.account limit 1""",
                occurrence.partition(":")[0],
            )
    except AWAY:
        return None
    return found


def _told(said: Said) -> str:
    last = said.output.strip().splitlines()[-1:] or [""]
    return f"{' '.join(said.arguments[:2])}: {said.code} {last[0][:160]}"
