-- Reads accounts of an occurrence in one of the states failed, dead and cancelled, in key order or against it, from the
-- index of those. $1 occurrence id, $2 its scheduled_at, $3 state, $4 from this account, $5 behind this one, $6 before this
-- one, $7 whether against the order, $8 at most.
(select l.account, l.position, l.state, l.attempts, l.generation, l.nothing_to_do, l.not_before, l.started_at, l.finished_at,
        l.error_class, left(l.error, 1000) as error, length(l.error) as error_length
   from matins.ledger l
  where not $7::boolean and l.occurrence_id = $1 and l.scheduled_at = $2
    and l.state in ('failed', 'dead', 'cancelled') and l.state = $3::text
    and l.account >= $4::text and l.account > $5::text and l.account < $6::text
  order by l.account
  limit $8)
union all
(select l.account, l.position, l.state, l.attempts, l.generation, l.nothing_to_do, l.not_before, l.started_at, l.finished_at,
        l.error_class, left(l.error, 1000), length(l.error)
   from matins.ledger l
  where $7::boolean and l.occurrence_id = $1 and l.scheduled_at = $2
    and l.state in ('failed', 'dead', 'cancelled') and l.state = $3::text
    and l.account >= $4::text and l.account > $5::text and l.account < $6::text
  order by l.account desc
  limit $8);
