-- Gives accounts whose worker has gone silent to another one: the row's epoch fences what the former one still writes.
-- It runs alone from now on, since it may be what ended the worker. In key order and without waiting.
-- $1 occurrence id, $2 its scheduled_at, $3 at most, $4 through position, $5 now.
with silent as materialized (
    select occurrence_id, account
      from matins.ledger
     where occurrence_id = $1 and scheduled_at = $2 and state = 'running' and finished_at is null
       and position <= $4
       and lease_until < coalesce($5::timestamptz, clock_timestamp())
     order by position
     limit $3)
, expired as (
    select l.occurrence_id, l.account
      from silent
      join matins.ledger l
        on l.occurrence_id = silent.occurrence_id and l.account = silent.account and l.scheduled_at = $2
       and l.state = 'running'
       and l.lease_until < coalesce($5::timestamptz, clock_timestamp())
     order by l.account
       for update of l skip locked)
update matins.ledger l
   set state = 'pending', lease_until = null, published_at = null, epoch = l.epoch + 1, isolated = true
  from expired
 where l.occurrence_id = expired.occurrence_id and l.account = expired.account and l.scheduled_at = $2
returning l.account;
