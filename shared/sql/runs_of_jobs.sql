-- Reads the last scheduled occurrences of each job that were claimed, the latest first: how long after they were due, and
-- what their first generation took, where that went through. A later one runs a part of the accounts, and says nothing
-- about a whole run. What each worker runs for itself counts by the slowest; of many workers fewer instants are read.
-- $1 jobs, $2 at most of each, $3 now.
with clock as (select coalesce($3::timestamptz, clock_timestamp()) as now)
select o.job, o.scheduled_at, o.state, o.claimed_by, o.total,
       greatest(extract(epoch from o.claimed_at - o.due_at), 0)::double precision as lag_seconds,
       case when coalesce(o.report -> 'generations' -> 0 ->> 'state', o.state) in ('succeeded', 'partial')
             and o.closed_at is not null then
            extract(epoch from coalesce((o.report -> 'generations' -> 0 ->> 'closed_at')::timestamptz, o.closed_at)
                               - o.claimed_at)::double precision end as seconds
  from clock
 cross join unnest($1::text[]) as job (name)
 cross join lateral (
       select distinct on (row.scheduled_at) row.*
         from (select *
                 from matins.occurrence latest
                where latest.job = job.name and latest.scheduled_at <= clock.now and latest.claimed_at is not null
                  and latest.origin = 'schedule'
                order by latest.scheduled_at desc
                limit 4 * $2::integer) row
        order by row.scheduled_at desc, row.closed_at - row.claimed_at desc nulls last
        limit $2) o
 order by o.job, o.scheduled_at desc;
