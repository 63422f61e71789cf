-- Reads what a parked message points at: its occurrence, the key of its job's queue, and how many of its accounts still wait
-- to be run by it. No row: there is no such occurrence here. $1 occurrence id, $2 job, $3 scheduled_at, $4 generation,
-- $5 accounts.
select o.variant, o.state, j.definition ->> 'queue' as key,
       (select count(*)
          from matins.ledger l
         where l.occurrence_id = o.id and l.scheduled_at = o.scheduled_at and l.account = any ($5::text[])
           and l.generation = $4 and l.state = 'pending') as waiting
  from matins.occurrence o
  join matins.job j on j.name = o.job
 where o.id = $1 and o.job = $2 and o.scheduled_at = $3;
