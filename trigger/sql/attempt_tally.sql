-- Counts, by process, its attempts on a job's scheduled instants since a time, and its wins, with how late after the due
-- instants they came. $1 job, $2 since.
select a.instance, a.region, coalesce(i.host, max(a.host)) as host, i.version, count(*) as attempts, count(*) filter (where a.won) as wins,
       min(a.attempted_at) as first_at, max(a.attempted_at) as last_at,
       percentile_cont(0.5) within group (order by extract(epoch from a.attempted_at - coalesce(o.due_at, a.scheduled_at)))::double precision
           as median_late_seconds,
       max(extract(epoch from a.attempted_at - coalesce(o.due_at, a.scheduled_at)))::double precision as most_late_seconds
  from matins.attempt a
  left join matins.instance i on i.id = a.instance
  left join matins.occurrence o on o.job = a.job and o.scheduled_at = a.scheduled_at and o.variant = a.variant
 where a.job = $1 and a.scheduled_at >= $2
 group by a.instance, a.region, i.host, i.version
 order by wins desc, attempts desc, a.instance;
