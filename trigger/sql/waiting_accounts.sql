-- Counts the accounts of an occurrence that were published and wait for the occurrences before, up to a bound: they are
-- delayed, and so in no other count. One that waits has been tried by nobody and has no error.
-- $1 occurrence id, $2 its scheduled_at, $3 watermark, $4 bound.
select count(*)
  from (select 1
          from matins.ledger l
         where l.occurrence_id = $1 and l.scheduled_at = $2 and l.position <= $3 and l.finished_at is null
           and l.state = 'pending' and l.not_before is not null and l.attempts = 0 and l.error_class is null
         limit $4::bigint) waiting;
