-- Marks accounts that were published again, unless somebody has moved the row on since. In key order, and without
-- waiting: a worker that executes the row fills the mark in when it settles. Each row is sought by its whole key.
-- $1 occurrence id, $2 its scheduled_at, $3 accounts, $4 their epochs, $5 published at.
with given as materialized (
    select $1::bigint as occurrence_id, one.account, one.epoch
      from unnest($3::text[], $4::bigint[]) with ordinality as one (account, epoch, place)
     where one.place between 1 and 10000)
, marked as (
    select l.occurrence_id, l.account
      from given
      join matins.ledger l
        on l.occurrence_id = given.occurrence_id and l.account = given.account and l.scheduled_at = $2
       and l.epoch = given.epoch and l.state = 'pending' and l.published_at is null
     order by l.account
       for update of l skip locked)
update matins.ledger l
   set published_at = $5
  from marked
 where l.occurrence_id = marked.occurrence_id and l.account = marked.account and l.scheduled_at = $2;
