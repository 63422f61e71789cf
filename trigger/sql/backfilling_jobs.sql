-- Finds, without a lock, the jobs with a backfill that goes on. $1 jobs.
select b.job
  from matins.backfill b
  join matins.job j on j.name = b.job
 where b.job = any ($1::text[]) and b.state = 'active' and j.paused_at is null and j.retired_at is null
   and not exists (select from matins.environment e where e.held_since is not null)
 order by b.job;
