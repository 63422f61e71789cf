-- Records that a run elsewhere has started: the first of an occurrence, another that takes it over, or one after it had
-- ended badly, as the next generation. Under the job row's lock, at the epoch that was read there; each start grows it, so
-- that an end which was decided by what came before changes nothing. It is never sealed: nothing is fanned out, and so no
-- sweep takes it for a run without accounts that is over. A clock that is ahead starts nothing before it is due.
-- $1 id, $2 epoch, $3 run, $4 finish within, $5 instance, $6 caller, $7 how it is known, $8 earlier generations, $9 now.
with clock as (select coalesce($9::timestamptz, clock_timestamp()) as now)
update matins.occurrence o
   set state = 'claimed', epoch = o.epoch + 1, generation = o.generation + (o.closed_at is not null)::integer,
       run_id = $3, claimed_by = $5, fired_by = $6, fire_reason = $7,
       claimed_at = coalesce(o.claimed_at, greatest(clock.now, o.due_at)), opened_at = greatest(clock.now, o.due_at),
       finish_by = greatest(clock.now, o.due_at) + $4::interval, report = $8,
       reason = null, ending = null, ending_reason = null, closed_at = null,
       total = null, succeeded = null, failed = null, dead = null, cancelled = null
  from clock
 where o.id = $1 and o.epoch = $2 and o.state in ('expected', 'claimed', 'failed', 'cancelled') and o.sealed_at is null
returning o.epoch, o.generation, o.claimed_at, o.due_at;
