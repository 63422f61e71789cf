-- Settles the accounts that did not succeed: a retry waits, a failure ends. Their row locks are held by this transaction.
-- A retry is recorded here before it is published; published_at null is what the publisher looks for.
-- Each row is sought by its whole key, as in `start_rows`.
-- A worker that settles has survived, so the account need not stand alone again.
-- $1 occurrence id, $2 its scheduled_at, $3 to $8 by account: account, state, charged tries, wait, error class, error;
-- $9 started at, $10 worker, $11 published at, $12 trace context.
with given as materialized (
    select $1::bigint as occurrence_id, one.*
      from unnest($3::text[], $4::text[], $5::integer[], $6::interval[], $7::text[], $8::text[])
           with ordinality as one (account, state, charged, wait, error_class, error, place)
     where one.place between 1 and 10000)
update matins.ledger l
   set state = given.state, epoch = l.epoch + 1, attempts = l.attempts + given.charged,
       starts = case when given.charged > 0 then 0 else l.starts end,
       isolated = false,
       started_at = $9,
       finished_at = case when given.state = 'failed' then greatest(clock_timestamp(), $9) end,
       not_before = case when given.state = 'pending' then clock_timestamp() + given.wait end,
       published_at = case when given.state = 'failed' then coalesce(l.published_at, $11) end,
       error_class = given.error_class, error = given.error, worker = $10, trace_context = $12
  from given
 where l.occurrence_id = given.occurrence_id and l.account = given.account and l.scheduled_at = $2
   and l.state = 'pending'
returning l.account, l.epoch, l.state, l.isolated, given.wait, clock_timestamp() as settled_at;
