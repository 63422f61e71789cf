-- Reads the occurrences of a job whose accounts may be published, how far each is published for the first time, and how
-- far its fan-out had come before any row was read: rows up to there are visible.
-- None while everything is held. $1 job.
select o.id, o.scheduled_at, o.variant, o.epoch, o.accounts_read, o.trace_context,
       coalesce((select max(p.through_position) from matins.publication p where p.occurrence_id = o.id), 0) as through
  from matins.occurrence o
 where o.job = $1 and o.state in ('claimed', 'running') and o.ending is null
   and not exists (select 1 from matins.environment e where e.held_since is not null)
 order by o.id;
