-- Reads the jobs whose last runs are to be judged, those that never were first, with their definitions. One that is paused
-- or retired is not judged. $1 at most, $2 now.
with clock as (select coalesce($2::timestamptz, clock_timestamp()) as now)
, due as (
    (select j.name, '-infinity'::timestamptz as judge_at
       from matins.job j
      where not exists (select from matins.forecast f where f.job = j.name)
        and j.retired_at is null and j.paused_at is null
      limit $1)
    union all
    (select f.job, f.judge_at
       from clock, matins.forecast f
       join matins.job j on j.name = f.job and j.retired_at is null and j.paused_at is null
      where f.judge_at <= clock.now
      order by f.judge_at
      limit $1))
select j.name, j.definition
  from due
  join matins.job j on j.name = due.name
 order by due.judge_at, j.name
 limit $1;
