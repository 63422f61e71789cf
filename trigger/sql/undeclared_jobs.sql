-- Names the jobs with occurrences that are not over and that this process doesn't declare, since their code may be gone,
-- each with the queue that its definition names. $1 declared jobs.
select j.name, j.definition ->> 'queue' as queue
  from matins.job j
 where j.name <> all ($1::text[])
   and exists (select from matins.occurrence o where o.job = j.name and o.state in ('claimed', 'running'))
 order by j.name;
