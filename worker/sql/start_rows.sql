-- Takes accounts for one transaction: of all copies of a message, one gets the row, the others skip what is locked.
-- Rows are locked in the order of their key. No row is given of an occurrence whose dispatch is over.
-- $1 occurrence id, $2 its scheduled_at, $3 accounts, $4 generation, $5 now.
select l.account, l.epoch, l.attempts, l.starts, l.key_salt, l.trace_context
  from matins.ledger l
 where l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = any($3::text[])
   and l.state = 'pending' and l.generation = $4
   and (l.not_before is null or l.not_before <= coalesce($5::timestamptz, clock_timestamp()))
   and not exists (select 1 from matins.occurrence o where o.id = $1 and o.ending is not null)
 order by l.account
   for update of l skip locked;
