-- Names the other jobs that are planned at some instants, as far as the plan is written ahead. $1 job, $2 instants, $3 how
-- many names of each instant.
select o.scheduled_at, count(*) as jobs, (array_agg(o.job order by o.job))[1:$3::integer] as named
  from matins.occurrence o
 where o.state = 'expected' and o.scheduled_at = any ($2::timestamptz[]) and o.job <> $1 and o.origin = 'schedule'
 group by o.scheduled_at;
