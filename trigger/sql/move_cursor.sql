-- Opens a page's transaction: of two fan-outs of one occurrence, only the one whose epoch and cursor are the row's goes on.
-- $1 id, $2 epoch, $3 cursor before the page, $4 cursor behind it, $5 accounts in it, $6 lease, $7 now.
update matins.occurrence
   set cursor = $4, accounts_read = accounts_read + $5::bigint, fan_out_attempts = 0,
       lease_until = coalesce($7::timestamptz, clock_timestamp()) + $6::interval
 where id = $1 and epoch = $2 and state = 'claimed' and ending is null and cursor is not distinct from $3
returning accounts_read, generation;
