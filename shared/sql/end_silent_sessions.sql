-- Ends sessions of our own login that were left in the middle of a message: their process has named a statement and then
-- said nothing, so that the server waits within it, with all locks, where no time limit of a transaction counts. A copy
-- waits for its rows in the same way, and is left alone. $1 for how long it has said nothing.
select pg_terminate_backend(pid)
  from pg_stat_activity
 where datname = current_database() and usename = session_user and application_name like 'matins %'
   and state = 'active' and wait_event_type = 'Client' and wait_event = 'ClientRead'
   and state_change < clock_timestamp() - $1::interval and query !~* '^\s*copy\M';
