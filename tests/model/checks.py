"""What must hold at the end of a run, read from the tables; and the part of it that must hold at every moment."""

from typing import TYPE_CHECKING, Any

from tests.model.jobs import JOB, MAX_TRIES, kind_of
from tests.model.process import MAX_CRASHES

if TYPE_CHECKING:
    from tests.model.world import World

_ACTIVE = "('claimed', 'running')"
_CLOSED = "('succeeded', 'partial', 'failed', 'cancelled')"
_OPEN = "('pending', 'running')"

_PAUSES = "('pause', 'resume')"
# Each is written under the job row's lock, so that what has the lower id came first.
_LATEST = f"""(select {{what}} from matins.audit p where p.kind in {_PAUSES} and p.id < {{{{0}}}}.id
            order by p.id desc limit 1)"""
_STANDING = _LATEST.format(what="p.kind")
_MEANWHILE = _LATEST.format(what="p.detail -> 'after' ->> 'meanwhile'")

# Each gives a row for every breach.
ALWAYS = {
    "an occurrence is over and has open accounts": f"""
        select o.id, o.state, l.account, l.state as its from matins.occurrence o
          join matins.ledger l on l.occurrence_id = o.id
         where o.state in {_CLOSED} and l.state in {_OPEN}""",
    "the counts do not add up": f"""
        select id, total, succeeded, failed, dead, cancelled, accounts_read from matins.occurrence o
         where o.state in {_CLOSED}
           and (total is distinct from succeeded + failed + dead + cancelled
                or total <> (select count(*) from matins.ledger l where l.occurrence_id = o.id)
                or total <> accounts_read
                or succeeded <> (select count(*) filter (where l.state = 'succeeded')
                                   from matins.ledger l where l.occurrence_id = o.id))""",
    "an occurrence was claimed more than once": """
        select occurrence_id, count(*) from matins.audit where kind = 'claim' group by 1 having count(*) > 1""",
    "an occurrence has more than one winner": """
        select job, scheduled_at, count(*) from matins.attempt where won group by 1, 2, variant having count(*) > 1""",
    "a generation was closed more than once": """
        select occurrence_id, detail ->> 'generation', count(*) from matins.audit where kind = 'closed'
         group by 1, 2 having count(*) > 1""",
    "an account has more than one effect": """
        select occurrence, account, count(*) from stepped.effect group by 1, 2 having count(*) > 1""",
    "an occurrence was claimed before it was due": """
        select scheduled_at, claimed_at from matins.occurrence where claimed_at < due_at""",
    "what an operator had called off runs": """
        select o.scheduled_at, o.state from matins.occurrence o join matins.audit a on a.occurrence_id = o.id
         where a.kind = 'cancel' and a.detail ->> 'state' = 'skipped' and o.state <> 'skipped'
           and o.origin <> 'backfill'""",
    "what a later occurrence had run already was run by the schedule": """
        select o.scheduled_at, later.scheduled_at from matins.occurrence o join matins.occurrence later
            on later.job = o.job and later.scheduled_at > o.scheduled_at and later.claimed_at < o.claimed_at
         where o.fired_by is null and o.variant = '' and later.variant = ''""",
    "positions are not 1, 2, 3…": """
        select o.id, o.accounts_read, max(l.position), count(*) from matins.occurrence o
          join matins.ledger l on l.occurrence_id = o.id
         group by o.id having max(l.position) <> o.accounts_read or count(distinct l.position) <> o.accounts_read""",
    "an account has had too many tries": f"""
        select occurrence_id, account, attempts from matins.ledger where attempts > {MAX_TRIES}""",
    "an account has had too many starts": f"""
        select occurrence_id, account, starts from matins.ledger where starts > {MAX_CRASHES} or starts < 0""",
    "a window does not begin where the one before ended": """
        select * from (
            select scheduled_at, window_since, lag(scheduled_at) over (order by scheduled_at) as before,
                   claimed_at, lag(claimed_at) over (order by scheduled_at) as claimed_before
              from matins.occurrence where claimed_at is not null and variant = '' and origin = 'schedule') claimed
         where before is not null and window_since <> before and claimed_at > claimed_before
           and not exists (
               select from matins.occurrence b
                where b.origin = 'backfill' and b.claimed_at < claimed.claimed_at
                  and b.scheduled_at = claimed.window_since and b.scheduled_at > before)""",
    "what was due was claimed while the job was paused": f"""
        select c.occurrence_id from matins.audit c join matins.occurrence o on o.id = c.occurrence_id
         where o.variant = '' and c.kind = 'claim' and {_STANDING.format("c")} = 'pause'""",
    "what a pause held was skipped for it": f"""
        select s.occurrence_id from matins.audit s
         where s.kind = 'skipped' and s.reason = 'paused' and {_MEANWHILE.format("s")} = 'hold'""",
    "what fell due in a pause that skips was run by itself": f"""
        select o.scheduled_at from matins.audit p
          join matins.audit r on r.kind = 'resume' and r.id > p.id and not exists (
               select from matins.audit n where n.kind in {_PAUSES} and n.id > p.id and n.id < r.id)
          join matins.occurrence o on o.due_at > p.at
           and o.due_at <= (r.detail -> 'after' ->> 'resumed_at')::timestamptz
         where p.kind = 'pause' and p.detail -> 'after' ->> 'meanwhile' = 'skip'
           and o.claimed_at is not null and o.fired_by is null and o.origin = 'schedule' and o.variant = ''""",
    "a scheduled instant was skipped for what a backfill runs": """
        select s.occurrence_id, b.scheduled_at from matins.audit s
          join matins.occurrence b on b.origin = 'backfill' and s.detail ->> 'because_of'
               = b.job || ':' || to_char(b.scheduled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"')
         where s.kind = 'skipped' and s.reason = 'overlap'""",
    "a backfill runs more at once than it may": f"""
        select b.id, count(*) from matins.backfill b
          join matins.backfill_occurrence i on i.backfill_id = b.id
          join matins.occurrence o on o.id = i.occurrence_id and o.generation = 1
           and o.fire_reason like 'backfill ' || b.id || ':%'
         where o.state in {_ACTIVE} group by b.id having count(*) > b.max_active""",
    "a backfill has ended, and something waits for it": """
        select b.id, o.scheduled_at from matins.backfill b
          join matins.backfill_occurrence i on i.backfill_id = b.id and i.left_out is null
          join matins.occurrence o on o.id = i.occurrence_id
         where b.state <> 'active' and o.state = 'expected' and not exists (
               select from matins.backfill_occurrence later
                where later.occurrence_id = o.id and later.backfill_id > b.id)""",
    "a backfill is done, and something of it was called off": """
        select b.id, s.occurrence_id from matins.backfill b
          join matins.audit s on s.detail ->> 'backfill' = b.id::text and s.reason = 'backfill cancelled'
         where b.state = 'done' and s.kind = 'skipped'""",
    "a worker ran for itself what was due before it started": """
        select o.scheduled_at, i.started_at from matins.occurrence o join matins.instance i on i.id = o.claimed_by
         where o.variant like '@%' and o.scheduled_at <= i.started_at""",
    "a worker that lives has lost what it ran for itself": """
        select l.account, i.seen_at, l.finished_at from matins.ledger l join matins.instance i on i.id = l.account
         where l.error_class = 'worker_lost' and i.seen_at > l.finished_at - interval '59 seconds'
           and (i.stopped_at is null or i.stopped_at > l.finished_at) and i.seen_at < l.finished_at""",
}
# Where the job's overlap says so. What a worker ran for itself is over for it once settled, before it is closed.
ONE_ACTIVE = {
    "two occurrences of the job are active": f"""
        select job, count(*) from matins.occurrence o where state in {_ACTIVE} and (variant not like '@%' or exists (
               select from matins.ledger l where l.occurrence_id = o.id and l.finished_at is null))
         group by 1, case when variant like '@%' then variant end having count(*) > 1"""
}
IN_TURN = {
    "an account is executed in two occurrences": """
        select account, count(*) from matins.ledger where state = 'running' group by 1 having count(*) > 1""",
    "an account is executed before its turn": f"""
        select o.scheduled_at, l.account, p.scheduled_at as before from matins.ledger l
          join matins.occurrence o on o.id = l.occurrence_id
          join matins.occurrence p on p.scheduled_at < o.scheduled_at and p.claimed_at < o.claimed_at
           and p.generation = 1 and p.state in {_ACTIVE}
          join matins.ledger e on e.occurrence_id = p.id and e.account = l.account and e.finished_at is null
         where l.state = 'running'""",
}
BOUND = """
    select count(*) as in_flight from matins.ledger l join matins.occurrence o on o.id = l.occurrence_id
     where l.finished_at is null and o.state in ('claimed', 'running')
       and (l.state = 'running' or l.published_at is not null or (l.epoch = 0 and l.position <= (
            select max(p.through_position) from matins.publication p where p.occurrence_id = o.id)))"""
AT_END = {
    "an account of the source has no row": """
        select o.scheduled_at, given from matins.occurrence o, unnest($1::text[]) given
         where o.sealed_at is not null and not exists (
               select from matins.ledger l where l.occurrence_id = o.id and l.account = given)""",
    "an account was cancelled, and nobody has ended the dispatch": """
        select o.scheduled_at, o.state, l.account from matins.occurrence o
          join matins.ledger l on l.occurrence_id = o.id
         where l.state = 'cancelled' and o.ending is null""",
    "an occurrence that somebody cancelled ended otherwise, or the reverse": """
        select scheduled_at, state, ending from matins.occurrence
         where (state = 'cancelled') <> (coalesce(ending, '') = 'cancel')""",
    "a due instant has no end": f"""
        select scheduled_at, state from matins.occurrence
         where state not in {_CLOSED} and state not in ('skipped', 'coalesced', 'missed') and scheduled_at <= $1""",
    "an end has no reason": """
        select scheduled_at, state from matins.occurrence
         where state in ('skipped', 'missed', 'failed', 'partial', 'cancelled') and coalesce(reason, '') = ''""",
    "an account succeeded and its effect is not there, or the reverse": """
        select o.scheduled_at, l.account, l.state, e.worker from matins.ledger l
          join matins.occurrence o on o.id = l.occurrence_id
          left join stepped.effect e on e.account = l.account
            and e.occurrence = o.job || o.variant
              || to_char(o.scheduled_at at time zone 'UTC', ':YYYY-MM-DD"T"HH24:MI"Z"')
         where (l.state = 'succeeded' and not l.nothing_to_do) <> (e.account is not null)""",
    "a closed generation is not in the audit": f"""
        select id from matins.occurrence o
         where state in {_CLOSED} and not exists (
               select from matins.audit a
                where a.occurrence_id = o.id and a.kind = 'closed'
                  and a.detail ->> 'generation' = o.generation::text)""",
    # One that waited may have been called off, or taken back by another definition; its time is then the next one's.
    "a coalesced instant lies outside of the window that it went into": """
        with recursive gone as (
            select id, scheduled_at, coalesced_into from matins.occurrence where coalesced_into is not null
            union all
            select gone.id, gone.scheduled_at, i.coalesced_into from gone
              join matins.occurrence i on i.id = gone.coalesced_into and i.coalesced_into is not null)
        select gone.scheduled_at, i.state, i.window_since, i.window_until from gone
          join matins.occurrence i on i.id = gone.coalesced_into and i.coalesced_into is null
         where (i.claimed_at is null and i.waits_for is null) or gone.scheduled_at > i.window_until
            or (i.claimed_at is not null and gone.scheduled_at < i.window_since)""",
}
_LATE = """
    select o.scheduled_at, i.claimed_at from matins.occurrence o join matins.occurrence i on i.id = o.coalesced_into
     where i.claimed_at - o.scheduled_at > interval '46 minutes' and i.waits_for is null"""
_LATE = """
    select scheduled_at from matins.occurrence
     where closed_at > finish_by + interval '6 minutes' and ending is null"""
_PERIODS = """
    select period,
           count(*) filter (where o.claimed_at is not null and o.variant = '') as claimed,
           count(*) filter (where o.id is not null and o.reason is distinct from 'superseded') as decided
      from generate_series((select date_trunc('hour', known_since) + interval '1 hour' from matins.job),
                           $1::timestamptz - interval '16 minutes', '15 minutes') period
      left join matins.occurrence o on o.scheduled_at >= period and o.scheduled_at < period + interval '15 minutes'
     group by 1 order by 1"""


async def findings(world: "World", *, during: bool = False) -> list[str]:
    """Give every breach."""
    control = world.server.control
    always = ALWAYS | ({} if world.profile.overlap == "allow" else ONE_ACTIVE)
    if world.profile.overlap_by == "account":
        always |= IN_TURN
    found = [
        f"{told}: {list(map(tuple, rows))[:3]}"
        for told, query in always.items()
        if (rows := await control.fetch(query))
    ]
    in_flight = await control.fetchval(BOUND)
    # A publisher that was frozen, and the one that took over, may both have filled the same room.
    if in_flight > 3 * world.profile.bound:
        found.append(f"{in_flight} accounts are in flight, of {world.profile.bound} that may be")
    if during:
        return found
    outside = world.profile.mode == "outside"
    for told, query in AT_END.items():
        if outside and "effect" in told:
            continue
        argument = world.accounts if "$1::text" in query else world.now
        rows = await control.fetch(query, *([argument] if "$1" in query else []))
        if rows:
            found.append(f"{told}: {list(map(tuple, rows))[:3]}")
    if world.profile.on_finish_within == "stop" and not world.profile.jump:
        late = await control.fetch(_LATE)
        found += [f"{row['scheduled_at']:%d %H:%M} went on behind its deadline" for row in late]
    if world.profile.mode == "every":
        return found
    found += await _periods(world)
    found += await _accounts(world)
    found += await _messages(world)
    return found


async def open_work(world: "World") -> list[str]:
    """Give what has not come to its end yet."""
    rows = await world.server.control.fetch(
        f"""select scheduled_at, state, ending,
                   (select string_agg(account || ' ' || state, ', ') from matins.ledger l
                     where l.occurrence_id = o.id and state in {_OPEN}) as open
              from matins.occurrence o
             where state in {_ACTIVE} or (state = 'expected' and scheduled_at <= $1)""",
        world.now,
    )
    left = [f"{row['scheduled_at']:%d %H:%M} {row['state']} {row['ending'] or ''} {row['open']}" for row in rows]
    waiting = (
        len(world.broker.ready())
        + len(world.broker.dead)
        + len([one for one in world.broker.held if not one.process.frozen])
    )
    return left + ([f"{waiting} messages"] if waiting else [])


async def _periods(world: "World") -> list[str]:
    """Every period has its run or its decision, and never two runs, whatever the order of the releases."""
    if not await world.server.control.fetchval("select count(*) from matins.job"):
        return ["the job is not known"]
    found = []
    for row in await world.server.control.fetch(_PERIODS, world.now):
        if row["claimed"] > 1:
            found.append(f"{row['period']:%d %H:%M}: two runs for one period")
        if row["decided"] == 0:
            found.append(f"{row['period']:%d %H:%M}: neither run nor decided")
    return found


async def _accounts(world: "World") -> list[str]:
    """Each account ends as its kind must, and nobody is charged for another's fault or a crash."""
    found = []
    rows = await world.server.control.fetch(
        "select l.*, o.generation as current from matins.ledger l join matins.occurrence o on o.id = l.occurrence_id"
    )
    for row in rows:
        kind, state, name = kind_of(row["account"]), row["state"], f"{row['account']} of {row['occurrence_id']}"
        ends = {"dead", "cancelled", _ENDS.get(kind, "succeeded")}
        if world.profile.mode == "set_based" and kind in {"silent", "broken"}:
            ends.add("failed")
        if state not in ends:
            found.append(f"{name} ended as {state}")
        if kind in {"well", "idle"} and row["attempts"] > 1:
            found.append(f"{name} was charged {row['attempts']} tries")
        if state == "failed" and kind != "hopeless" and row["attempts"] != MAX_TRIES:
            found.append(f"{name} failed after {row['attempts']} tries")
        key = (row["occurrence_id"], row["account"])
        if kind != "poison" and state == "dead" and world.watch.blamed.get(key, 0) < MAX_CRASHES:
            found.append(f"{name} is dead, and ended no worker often enough")
    return found


_ENDS = {
    "failing": "failed",
    "hopeless": "failed",
    "poison": "dead",
    "silent": "failed",
    "broken": "failed",
    "stuck": "failed",
}


async def _messages(world: "World") -> list[str]:
    """No message names an account without its row."""
    named = sorted(set(world.named))
    rows: list[Any] = await world.server.control.fetch(
        """select * from unnest($1::bigint[], $2::text[]) as named (occurrence, account)
            where not exists (select from matins.ledger l
                               where l.occurrence_id = named.occurrence and l.account = named.account)""",
        [one for one, _ in named],
        [one for _, one in named],
    )
    worst = max(world.broker.sent.values(), default=0)
    found = [f"{JOB}: a message names what has no row: {tuple(row)}" for row in rows[:3]]
    once = world.peaceful and not world.profile.refused and not world.profile.operator
    most = MOST_SENT_IN_PEACE if once else MOST_SENT
    if world.profile.overlap_by == "account":
        # Who waits for its turn is published at each look.
        return found
    return found + ([f"an account was published {worst} times"] if worst > most else [])


MOST_SENT = 40
# A further try is published by the worker that recorded it.
MOST_SENT_IN_PEACE = 1
