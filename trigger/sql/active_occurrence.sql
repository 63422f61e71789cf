-- Reads the occurrences of a job that still run, those that were opened last first, and whether the schedule has each run:
-- one that a backfill runs again is not the schedule's. Under the job row's lock. $1 job.
select o.id, o.scheduled_at, o.due_at, o.variant, o.state, o.claimed_at, o.opened_at, o.ending,
       o.origin = 'schedule' and not exists (
           select from matins.backfill b
             join matins.backfill_occurrence i on i.backfill_id = b.id and i.occurrence_id = o.id
            where b.job = $1 and i.left_out is null and i.generation = o.generation and o.generation > 1) as is_scheduled
  from matins.occurrence o
 where o.job = $1 and o.state in ('claimed', 'running')
 order by o.opened_at desc, o.id desc;
