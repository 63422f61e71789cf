-- Settles accounts in the transaction of a job's own login that has started them.
-- $1 occurrence id, $2 its scheduled_at, $3 to $10 by account: account, epoch, state, charged tries, wait, error class,
-- error, nothing to do; $11 started at, $12 worker, $13 published at, $14 trace context.
select account, epoch, state, isolated, wait, settled_at
  from matins.settle_rows($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14);
