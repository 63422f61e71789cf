-- Reads the last definitions that a job has had, the latest first, with who recorded each. $1 job, $2 how many.
select r.revision, r.definition, r.effective_from, r.recorded_by, i.host, i.version
  from matins.job_revision r
  left join matins.instance i on i.id = r.recorded_by
 where r.job = $1
 order by r.revision desc
 limit $2;
