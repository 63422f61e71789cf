-- Settles an outside call, if nobody has taken the account over since its start: no row means fenced.
-- $1 occurrence id, $2 its scheduled_at, $3 account, $4 epoch, $5 state, $6 charged tries, $7 wait, $8 error class,
-- $9 error, $10 nothing to do, $11 result, $12 trace context.
update matins.ledger
   set state = $5, epoch = epoch + 1, attempts = attempts + $6,
       starts = case when $6::integer > 0 then 0 else starts - 1 end,
       lease_until = null,
       finished_at = case when $5 in ('succeeded', 'failed') then clock_timestamp() end,
       not_before = case when $5 = 'pending' then clock_timestamp() + $7::interval end,
       published_at = case when $5 = 'pending' then null else published_at end,
       error_class = $8, error = $9, nothing_to_do = $10, result = $11,
       trace_context = case when $5 = 'succeeded' then trace_context else $12 end
 where occurrence_id = $1 and scheduled_at = $2 and account = $3 and state = 'running' and epoch = $4
returning epoch, clock_timestamp() as settled_at;
