-- Finds, without a lock, the jobs whose last occurrences have all failed since they were last resumed, and that no pause
-- has stopped yet. One that runs again stands among them, and has not failed. $1 jobs, $2 how many failures of each.
select j.name
  from unnest($1::text[], $2::integer[]) as given (name, failures)
  join matins.job j on j.name = given.name and j.paused_at is null and j.retired_at is null
 where given.failures = (
       select count(*) filter (where latest.state = 'failed' and latest.closed_at > coalesce(j.resumed_at, '-infinity'))
         from (select o.state, o.closed_at
                 from matins.occurrence o
                where o.job = j.name and o.variant = '' and (o.closed_at is not null or o.generation > 1)
                order by o.scheduled_at desc
                limit given.failures) latest);
