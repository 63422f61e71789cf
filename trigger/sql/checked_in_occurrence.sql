-- Reads what a check-in needs of its occurrence, with the epoch that the write will demand, who is to run what it was
-- planned as, and whether this run has started it before. $1 job, $2 scheduled_at, $3 run.
select o.id, o.scheduled_at, o.due_at, o.state, o.reason, o.epoch, o.generation, o.ending, o.run_id, o.claimed_at, o.opened_at,
       o.closed_at, o.succeeded, o.failed, o.dead, o.cancelled, o.report, o.fired_by,
       r.definition ->> 'coordination' as coordination,
       exists (select from matins.audit a
                where a.occurrence_id = o.id and a.kind = 'check_in' and a.detail ->> 'event' = 'start'
                  and a.detail ->> 'run' = $3::text and a.detail ->> 'refused' is null) as started_before
  from matins.occurrence o
  join matins.job_revision r on r.job = o.job and r.revision = o.revision
 where o.job = $1 and o.scheduled_at = $2 and o.variant = '';
