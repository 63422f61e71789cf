-- Accounts whose message was dead-lettered without their own fault: the publisher sends each again, alone.
-- $1 occurrence id, $2 its scheduled_at, $3 accounts, $4 generation, $5 starts that mark a killer.
with innocent as (
    select l.account
      from matins.ledger l
     where l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = any($3::text[]) and l.generation = $4
       and l.state = 'pending' and l.starts < $5
     order by l.account
       for update of l skip locked)
update matins.ledger l
   set published_at = null, epoch = l.epoch + 1, isolated = true
  from innocent
 where l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = innocent.account
returning l.account;
