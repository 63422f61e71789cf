-- Lists what goes on, or is decided anew, once a hold is released: occurrences that run, and those that are due and that
-- nobody has decided, each with its open accounts and whether its effects lie outside.
select o.job, o.scheduled_at, o.variant, o.state, o.generation, o.claimed_at, o.ending, o.accounts_read,
       (select count(*) from matins.ledger l
         where l.occurrence_id = o.id and l.scheduled_at = o.scheduled_at and l.finished_at is null) as open,
       j.definition -> 'handler' ->> 'mode' = 'Outside' as outside,
       make_interval(secs => (j.definition -> 'handler' ->> 'key_valid_for')::double precision) as key_valid_for,
       j.definition -> 'decisions' ->> 'catch_up' as catch_up, j.definition ->> 'coordination' as coordination,
       clock_timestamp() as now
  from matins.occurrence o
  join matins.job j on j.name = o.job
 where o.state in ('claimed', 'running')
    or (o.state = 'expected' and o.due_at <= clock_timestamp() and j.retired_at is null)
 order by o.scheduled_at, o.job, o.variant;
