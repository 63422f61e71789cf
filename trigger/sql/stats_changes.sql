-- Reads what was changed since a time, the oldest first: versions that began to run, and definitions of the job.
-- $1 job, $2 since, $3 at most of each.
(select d.at, d.system, d.version, d.actor, d.reason
   from matins.deploy d
  where d.at >= $2
  order by d.at desc
  limit $3)
union all
(select r.effective_from, 'definition', 'revision ' || r.revision, null, null
   from matins.job_revision r
  where r.job = $1 and r.effective_from >= $2
  order by r.revision desc
  limit $3)
 order by at, system, version;
