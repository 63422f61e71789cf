-- Takes accounts for one transaction of a job's own login, as `start_as_login`, where accounts wait for the occurrences
-- before: `wait` is how long, and null for one that may run now.
-- $1 occurrence id, $2 its scheduled_at, $3 accounts, $4 generation.
select account, epoch, attempts, starts, key_salt, trace_context, started_at, wait
  from matins.start_in_turn($1, $2, $3, $4);
