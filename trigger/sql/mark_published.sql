-- Marks accounts that were published again, unless somebody has moved the row on since. In key order, and without
-- waiting: a worker that executes the row fills the mark in when it settles.
-- $1 occurrence id, $2 its scheduled_at, $3 accounts, $4 their epochs, $5 published at.
with marked as (
    select l.account
      from matins.ledger l
      join unnest($3::text[], $4::bigint[]) as given (account, epoch)
        on l.account = given.account and l.epoch = given.epoch
     where l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = any ($3::text[])
       and l.state = 'pending' and l.published_at is null
     order by l.account
       for update of l skip locked)
update matins.ledger l
   set published_at = $5
 where l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = any (array(select account from marked));
