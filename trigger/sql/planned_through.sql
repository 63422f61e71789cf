-- Reads how far jobs are planned, and the present: tells without a lock whose plan is short. $1 jobs, $2 now.
select name, revision, planned_through, coalesce($2::timestamptz, clock_timestamp()) as now
  from matins.job
 where name = any ($1::text[]) and retired_at is null;
