-- Reads a job's backfill that goes on, with how many of its occurrences run, how many wait, and whether the schedule has
-- one due, which goes first. Under the job row's lock. $1 job, $2 now.
select b.id, b.reverse, b.max_active, b.actor, b.reason,
       count(*) filter (where o.state in ('claimed', 'running')) as running,
       count(*) filter (where i.left_out is null and (o.state = 'expected' or o.generation < i.generation)) as waiting,
       exists (select from matins.environment e where e.held_since is not null) as held,
       exists (select from matins.occurrence due
                where due.job = $1 and due.state = 'expected' and due.variant = '' and due.origin = 'schedule'
                  and due.due_at <= coalesce($2::timestamptz, clock_timestamp())) as schedule_is_due
  from matins.backfill b
  join matins.backfill_occurrence i on i.backfill_id = b.id
  join matins.occurrence o on o.id = i.occurrence_id
 where b.job = $1 and b.state = 'active'
 group by b.id;
