-- Reads the job of an occurrence: how it stands, and the definition by which the occurrence is run. $1 job, $2 revision.
select j.revision, j.paused_at, j.paused_by, j.pause_reason, j.meanwhile, j.resumed_at, j.retired_at, j.retired_by,
       j.retire_reason, coalesce(r.definition, j.definition) as definition, r.effective_from, clock_timestamp() as now
  from matins.job j
  left join matins.job_revision r on r.job = j.name and r.revision = $2
 where j.name = $1;
