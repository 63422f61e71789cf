-- Reads the occurrence of a job that still runs, if there is one; under the job row's lock. $1 job.
select id, scheduled_at, variant, state
  from matins.occurrence
 where job = $1 and state in ('claimed', 'running')
 order by id
 limit 1;
