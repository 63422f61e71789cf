-- Reads the occurrences that run, with how many of their accounts are open.
select o.id, o.job, o.scheduled_at, o.variant, o.state, o.ending, o.generation, o.opened_at, o.finish_by, o.accounts_read,
       o.sealed_at is not null as sealed, clock_timestamp() > o.finish_by as overdue,
       (select count(*) from matins.ledger l
         where l.occurrence_id = o.id and l.scheduled_at = o.scheduled_at and l.finished_at is null) as open,
       (select count(*) from matins.ledger l
         where l.occurrence_id = o.id and l.scheduled_at = o.scheduled_at and l.state in ('failed', 'dead')) as unsuccessful
  from matins.occurrence o
 where o.state in ('claimed', 'running')
 order by o.job, o.scheduled_at;
