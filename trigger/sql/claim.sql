-- Decides who runs an occurrence: of all who try, one finds the row still expected, of the current revision, and due by
-- the database's clock. Its window begins where the one of the last that was claimed ended.
-- $1 job, $2 scheduled_at, $3 variant, $4 instance, $5 region, $6 revision, $7 lease, $8 finish within, $9 trace context,
-- $10 fired by, $11 fire reason, $12 now.
with clock as (select coalesce($12::timestamptz, clock_timestamp()) as now)
, claimed as (
    update matins.occurrence o
       set state = 'claimed', epoch = o.epoch + 1, claimed_by = $4, claimed_at = clock.now, opened_at = clock.now,
           lease_until = clock.now + $7::interval, finish_by = clock.now + $8::interval,
           trace_context = $9, fired_by = $10, fire_reason = $11,
           window_since = coalesce(
               (select max(earlier.scheduled_at) from matins.occurrence earlier
                 where earlier.job = $1 and earlier.variant = '' and earlier.scheduled_at < $2
                   and earlier.claimed_at is not null),
               (select least(o.window_since, min(earlier.window_since)) from matins.occurrence earlier
                 where earlier.job = $1 and earlier.variant = '' and earlier.scheduled_at <= $2))
      from clock
     where o.job = $1 and o.scheduled_at = $2 and o.variant = $3
       and o.state = 'expected' and o.revision = $6 and o.scheduled_at <= clock.now
    returning o.*)
, attempted as (
    insert into matins.attempt (job, scheduled_at, variant, instance, region, attempted_at, won)
    select $1, $2, $3, $4, $5, clock.now, exists (select from claimed) from clock where $2 <= clock.now
    on conflict (job, scheduled_at, variant, instance) do update set won = true where excluded.won)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, actor, reason, detail)
    select 'claim', job, id, $4, $10, $11, jsonb_build_object('epoch', epoch, 'region', $5::text)
      from claimed)
select id, job, scheduled_at, variant, window_since, window_until, generation, epoch, cursor, accounts_read,
       fan_out_attempts, claimed_at, trace_context
  from claimed;
