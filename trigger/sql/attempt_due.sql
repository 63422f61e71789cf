-- Records that this instance attempts each due instant, once, also when it finds it taken; gives what it found of those
-- that it attempts now, the latest first. Under the job row's lock.
-- $1 job, $2 instance, $3 region, $4 how long ago it must have been due, $5 also those that another has taken, $6 now.
with clock as (select coalesce($6::timestamptz, clock_timestamp()) as now)
, seen as (
    select o.scheduled_at, o.state, o.claimed_by, o.claimed_at
      from clock, matins.occurrence o
     where o.job = $1 and o.variant = '' and o.origin = 'schedule' and o.scheduled_at <= clock.now - $4::interval
       and o.due_at <= clock.now - $4::interval and coalesce(o.reason, '') not in ('superseded', 'calendar')
       and (o.state = 'expected' or $5::boolean and o.scheduled_at >= (
               select greatest(i.started_at, clock.now - interval '1 day') from matins.instance i where i.id = $2)))
, attempted as (
    insert into matins.attempt (job, scheduled_at, instance, region, attempted_at)
    select $1, seen.scheduled_at, $2, $3, clock.now from clock, seen
    on conflict do nothing
    returning scheduled_at)
select seen.scheduled_at, seen.state, seen.claimed_by, seen.claimed_at
  from seen
 where seen.scheduled_at = any (array(select scheduled_at from attempted))
 order by seen.scheduled_at desc;
