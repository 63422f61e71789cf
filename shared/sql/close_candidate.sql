-- Reads what a close needs, with the generation that the write will demand: a re-run in between changes it.
-- $1 occurrence id. No row: not closable now. An open row at the far end of the fan-out is found at once.
select o.job, o.scheduled_at, o.variant, o.generation, o.ending, o.ending_reason, o.fan_out_error, o.claimed_at, o.opened_at,
       o.report, o.state, o.sealed_at, o.trace_context,
       coalesce((r.definition ->> 'partial_ok')::double precision, 0) as partial_ok
  from matins.occurrence o
  left join matins.job_revision r on r.job = o.job and r.revision = o.revision
 where o.id = $1
   and o.state in ('claimed', 'running')
   and (o.sealed_at is not null or o.ending is not null)
   and (select l.position from matins.ledger l
         where l.occurrence_id = o.id and l.scheduled_at = o.scheduled_at and l.finished_at is null
         order by l.position desc limit 1) is null;
