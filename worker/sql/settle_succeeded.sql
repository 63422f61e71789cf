-- Settles the accounts that succeeded, in the transaction that holds their effects and their row locks.
-- Each row is sought by its whole key, as in `start_rows`.
-- $1 occurrence id, $2 its scheduled_at, $3 accounts, $4 those with nothing to do, $5 started at, $6 worker,
-- $7 published at, of the message: a worker may be faster than the publisher's mark.
with given as materialized (
    select $1::bigint as occurrence_id, one.account
      from unnest($3::text[]) with ordinality as one (account, place)
     where one.place between 1 and 10000)
update matins.ledger l
   set state = 'succeeded', epoch = l.epoch + 1, attempts = l.attempts + 1, starts = 0,
       nothing_to_do = l.account = any($4::text[]),
       started_at = $5, finished_at = greatest(clock_timestamp(), $5), worker = $6,
       published_at = coalesce(l.published_at, $7), error_class = null, error = null
  from given
 where l.occurrence_id = given.occurrence_id and l.account = given.account and l.scheduled_at = $2
   and l.state = 'pending';
