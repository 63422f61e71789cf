-- Names the occurrences of a job that run. $1 job.
select scheduled_at, variant
  from matins.occurrence
 where job = $1 and state in ('claimed', 'running')
 order by scheduled_at, variant;
