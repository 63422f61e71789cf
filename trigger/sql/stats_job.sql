-- Reads a job as the fleet declares it now, with the database's time. $1 job, $2 now.
select j.definition, j.revision, j.paused_at, j.retired_at, coalesce($2::timestamptz, clock_timestamp()) as now
  from matins.job j
 where j.name = $1;
