-- Reads the jobs that every worker runs for itself, and since when each counts. $1 now.
select j.name, j.definition, coalesce($1::timestamptz, clock_timestamp()) as now,
       greatest(r.effective_from, j.resumed_at, (select w.held_at from matins.watch w)) as counts_from
  from matins.job j
  join matins.job_revision r on r.job = j.name and r.revision = j.revision
 where j.definition ->> 'coordination' = 'every' and j.retired_at is null and j.paused_at is null
 order by j.name;
