-- Writes what was judged of jobs, in the order of their names: several may judge the same, and find the same.
-- $1 an array of job, judge_at, duration and lag, $2 now.
insert into matins.forecast as known (job, judged_at, judge_at, duration, lag)
select judged.job, coalesce($2::timestamptz, clock_timestamp()), judged.judge_at, judged.duration, judged.lag
  from jsonb_to_recordset($1::jsonb) as judged (job text, judge_at timestamptz, duration jsonb, lag jsonb)
 order by judged.job
on conflict (job) do update
   set judged_at = excluded.judged_at, judge_at = excluded.judge_at, duration = excluded.duration, lag = excluded.lag;
