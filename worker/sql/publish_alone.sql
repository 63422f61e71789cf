-- Accounts whose message was dead-lettered without their own fault: the publisher sends each again, alone.
-- Each row is sought by its whole key, as in `start_rows`.
-- $1 occurrence id, $2 its scheduled_at, $3 accounts, $4 generation, $5 starts that mark a killer.
with given as materialized (
    select $1::bigint as occurrence_id, one.account
      from unnest($3::text[]) with ordinality as one (account, place)
     where one.place between 1 and 10000)
, innocent as (
    select l.occurrence_id, l.account
      from given
      join matins.ledger l
        on l.occurrence_id = given.occurrence_id and l.account = given.account and l.scheduled_at = $2
       and l.generation = $4 and l.state = 'pending' and l.starts < $5
     order by l.account
       for update of l skip locked)
update matins.ledger l
   set published_at = null, epoch = l.epoch + 1, isolated = true
  from innocent
 where l.occurrence_id = innocent.occurrence_id and l.account = innocent.account and l.scheduled_at = $2
returning l.account;
