-- Ends accounts that were not started, once dispatch is over. What is executed now settles as it settles: locked rows are
-- left alone, and since nothing is waited for the order is free, that of the index of open rows.
-- $1 occurrence id, $2 its scheduled_at, $3 at most, $4 now.
with untouched as (
    select l.occurrence_id, l.account
      from matins.ledger l
      join matins.occurrence o on o.id = l.occurrence_id and o.ending is not null
     where l.occurrence_id = $1 and l.scheduled_at = $2 and l.state = 'pending' and l.finished_at is null
     order by l.position
     limit $3
       for update of l skip locked)
update matins.ledger l
   set state = 'cancelled', finished_at = coalesce($4::timestamptz, clock_timestamp()), epoch = l.epoch + 1
  from untouched
 where l.occurrence_id = untouched.occurrence_id and l.account = untouched.account and l.scheduled_at = $2
returning l.account;
