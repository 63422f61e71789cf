-- Reads what decides whether a worker may run a job for itself: the revision of its own definition, whether the job is
-- paused or retired, how far the ledger is prepared, and whether its code was shown to be repeatable.
-- $1 job, $2 fingerprint, $3 mark of the code, $4 now.
select r.revision, j.paused_at, j.retired_at, j.planned_through, coalesce($4::timestamptz, clock_timestamp()) as now,
       exists (select from matins.environment e where e.held_since is not null) as held,
       exists (select from matins.trial t where t.job = j.name and t.mark = $3) as tried
  from matins.job j
  left join lateral (
       select revision from matins.job_revision known
        where known.job = j.name and known.fingerprint = $2
        order by revision desc
        limit 1) r on true
 where j.name = $1;
