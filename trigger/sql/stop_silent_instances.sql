-- Says of processes that have been silent for long that they have ended, and forgets rights that ran out long ago.
-- $1 silence, $2 now.
with clock as (select coalesce($2::timestamptz, clock_timestamp()) as now)
, forgotten as (
    delete from matins.lease using clock where until < clock.now - interval '1 day' and name not like 'leader:%')
update matins.instance
   set stopped_at = clock.now
  from clock
 where stopped_at is null and seen_at < clock.now - $1::interval
returning id;
