-- Takes accounts for one transaction of a job's own login, which cannot reach the ledger but through functions.
-- $1 occurrence id, $2 its scheduled_at, $3 accounts, $4 generation.
select account, epoch, attempts, starts, key_salt, trace_context, started_at
  from matins.start($1, $2, $3, $4);
