-- Reads what ended badly and no later generation has mended: each job's last occurrence that was decided, and what was due
-- in the last days; the latest first, with how many there are in all. A worker's own run, which nobody runs again, is
-- mended by any later one of its job; what somebody has acknowledged since it ended is known. $1 days, $2 at most.
select o.job, o.scheduled_at, o.variant, o.state, o.reason, o.total, o.succeeded, count(*) over () as found
  from matins.job j
  cross join lateral (
       select least(max(l.scheduled_at), clock_timestamp() - make_interval(days => $1)) as since from matins.occurrence l
        where l.job = j.name and l.origin <> 'ad_hoc' and l.state in ('succeeded', 'partial', 'failed', 'cancelled', 'missed')) decided
  join matins.occurrence o
    on o.job = j.name and o.state in ('partial', 'failed', 'missed') and o.scheduled_at >= decided.since
 where j.retired_at is null
   and not exists (
       select from matins.alert known
        where known.occurrence_id = o.id and known.kind = o.state and known.acknowledged_at >= coalesce(o.closed_at, o.due_at))
   and not (o.variant like '@%' and coalesce(o.scheduled_at < (
       select max(later.scheduled_at) from matins.occurrence later
        where later.job = o.job and later.state = 'succeeded'), false))
 order by o.scheduled_at desc, o.job, o.variant
 limit $2;
