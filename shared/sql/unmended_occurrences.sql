-- Finds what ended badly in the last days and no later generation has mended, by the indexes of what ended so, and whatever
-- has an open alert for it, also while it runs again. A worker's own run, which nobody runs again, is mended by any later one
-- of its job. $1 days, $2 now.
with clock as (select coalesce($2::timestamptz, clock_timestamp()) as now)
, standing as materialized (
    select distinct on (a.occurrence_id) a.occurrence_id, a.kind, a.detail
      from matins.alert a
     where a.closed_at is null and a.occurrence_id is not null and a.kind in ('partial', 'failed', 'missed')
     order by a.occurrence_id, a.id desc)
, candidate as materialized (
    select o.id from clock, matins.occurrence o
     where o.state in ('partial', 'failed') and o.closed_at > clock.now - make_interval(days => $1)
    union
    select o.id from clock, matins.occurrence o
     where o.state = 'missed' and o.scheduled_at > clock.now - make_interval(days => $1)
    union
    select s.occurrence_id from standing s)
select o.id, o.job, o.scheduled_at, o.variant, o.reason, o.total, o.succeeded, o.closed_at, o.due_at, o.state,
       ended.badly, case when ended.badly then o.state else s.kind end as kind,
       case when ended.badly then o.generation else (s.detail ->> 'generation')::integer end as generation
  from candidate c
  join matins.occurrence o on o.id = c.id
  join matins.job j on j.name = o.job
  left join standing s on s.occurrence_id = o.id
 cross join lateral (select o.state in ('partial', 'failed', 'missed') as badly) ended
 where j.retired_at is null
   and (ended.badly or (s.kind is not null and o.state in ('expected', 'claimed', 'running')))
   and not (o.variant like '@%' and exists (
       select from matins.occurrence later
        where later.job = o.job and later.scheduled_at > o.scheduled_at and later.state = 'succeeded'))
 order by o.scheduled_at, o.job, o.variant;
