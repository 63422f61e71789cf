-- Lists accounts of an occurrence by state, a page at a time, in key order.
-- $1 occurrence id, $2 its scheduled_at, $3 states, $4 after this account (null: from the first), $5 at most.
select l.account, l.state, l.generation, l.attempts, l.nothing_to_do, l.not_before, l.started_at, l.finished_at, l.worker,
       l.error_class, l.error, l.result, l.trace_context
  from matins.ledger l
 where l.occurrence_id = $1 and l.scheduled_at = $2 and l.state = any ($3::text[])
   and ($4::text is null or l.account > $4::text)
 order by l.account
 limit $5;
