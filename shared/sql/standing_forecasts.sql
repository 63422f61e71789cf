-- Reads what was found of jobs when they were judged last. A job that is paused or retired raises nothing.
select f.job, f.duration, f.lag
  from matins.forecast f
  join matins.job j on j.name = f.job and j.retired_at is null and j.paused_at is null
 where f.duration is not null or f.lag is not null
 order by f.job;
