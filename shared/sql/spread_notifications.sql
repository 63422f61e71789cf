-- Gives each notification that concerns a channel its delivery there; of all who do it at once, the unique key lets one.
-- It looks an hour behind what was done before, since what was written earlier may be committed later; a new channel is
-- told of the last hour, and one that is back after long of no more than it would not have given up.
-- $1 channel, $2 kinds, null for all, $3 kinds that are not told, $4 jobs, null for all, $5 given up after, $6 now.
with clock as (select coalesce($6::timestamptz, clock_timestamp()) as now)
, former as (
    -- Not from what lies ahead: somebody may have set the database's clock back.
    select greatest(least((select spread_through from matins.channel where name = $1), clock.now) - interval '1 hour',
                    clock.now - $5::interval) as since
      from clock)
, known as (
    insert into matins.channel as c (name, spread_through) select $1, clock.now from clock
    on conflict (name) do update set spread_through = excluded.spread_through
     where abs(extract(epoch from excluded.spread_through - c.spread_through)) > 60)
insert into matins.delivery (channel, thread, place, notification_id, event, created_at, not_before)
select $1, a.kind || ' ' || a.subject, n.id, n.id, n.event, n.created_at, n.created_at
  from former, matins.notification n
  join matins.alert a on a.id = n.alert_id
 where n.created_at > former.since
   and ($2::text[] is null or a.kind = any($2)) and not a.kind = any($3::text[])
   and ($4::text[] is null or a.job = any($4))
   -- Asked one by one: as a join it would be planned over every delivery there ever was.
   and (select d.id from matins.delivery d where d.channel = $1 and d.notification_id = n.id) is null
 order by n.id
on conflict (channel, notification_id) do nothing;
