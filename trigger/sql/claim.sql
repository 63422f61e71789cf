-- Decides who runs an occurrence: of all who try, one finds the row still expected, of the current revision, due by the
-- database's clock, and not older than what is retained: its rows would have no partition. The window of a scheduled one
-- begins where the last one ended that was claimed with nothing left out behind it; a backfilled or an ad-hoc one keeps its
-- own. Nothing is claimed while everything is held.
-- $1 job, $2 scheduled_at, $3 variant, $4 instance, $5 region, $6 revision, $7 lease, $8 finish within, $9 trace context,
-- $10 fired by, $11 fire reason, $12 now, $13 actor kind, $14 host (null for a process of the fleet).
with clock as (select coalesce($12::timestamptz, clock_timestamp()) as now)
, scheduled as materialized (
    select max(earlier.scheduled_at) as claimed
      from matins.occurrence earlier
     where earlier.job = $1 and earlier.variant = '' and earlier.scheduled_at < $2
       and earlier.claimed_at is not null and earlier.origin = 'schedule')
, left_out as materialized (
    select coalesce(min(earlier.scheduled_at), $2) as first
      from scheduled, matins.occurrence earlier
     where earlier.job = $1 and earlier.variant = '' and earlier.scheduled_at < $2
       and earlier.scheduled_at > coalesce(scheduled.claimed, '-infinity')
       and earlier.claimed_at is null and earlier.reason is distinct from 'superseded')
, claimed as (
    update matins.occurrence o
       set state = 'claimed', epoch = o.epoch + 1, claimed_by = $4, claimed_at = clock.now, opened_at = clock.now,
           lease_until = clock.now + $7::interval, finish_by = clock.now + $8::interval,
           trace_context = $9, fired_by = $10, fire_reason = $11,
           window_since = case when o.origin <> 'schedule' then o.window_since else coalesce(
               (select max(earlier.scheduled_at) from scheduled, left_out, matins.occurrence earlier
                 where earlier.job = $1 and earlier.variant = '' and earlier.scheduled_at >= scheduled.claimed
                   and earlier.scheduled_at < left_out.first and earlier.claimed_at is not null),
               (select least(o.window_since, min(earlier.window_since)) from matins.occurrence earlier
                 where earlier.job = $1 and earlier.variant = '' and earlier.scheduled_at <= $2
                   and earlier.origin = 'schedule')) end
      from clock
     where o.job = $1 and o.scheduled_at = $2 and o.variant = $3
       and o.state = 'expected' and o.revision = $6 and o.due_at <= clock.now
       and not exists (select 1 from matins.environment e where e.held_since is not null)
       and o.scheduled_at >= coalesce((select e.retained_from from matins.environment e), o.scheduled_at)
    returning o.*)
, attempted as (
    insert into matins.attempt (job, scheduled_at, variant, instance, region, attempted_at, won, host)
    select $1, $2, $3, $4, $5, clock.now, exists (select from claimed), $14 from clock
     where exists (
           select from matins.occurrence o
            where o.job = $1 and o.scheduled_at = $2 and o.variant = $3 and o.due_at <= clock.now)
    on conflict (job, scheduled_at, variant, instance) do update set won = true where excluded.won)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, actor, actor_kind, reason, detail)
    select 'claim', job, id, $4, $10, $13, $11,
           jsonb_build_object('epoch', epoch, 'region', $5::text, 'before', 'expected', 'after', state)
      from claimed)
select id, job, scheduled_at, due_at, variant, origin, window_since, window_until, generation, epoch, cursor, accounts_read,
       fan_out_attempts, claimed_at, trace_context
  from claimed;
