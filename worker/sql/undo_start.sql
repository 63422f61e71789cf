-- Takes back a committed start that ended neither in a settle nor in the worker's death: the drain cut it off, or another
-- copy of the message has the row.
-- $1 occurrence id, $2 its scheduled_at, $3 account, $4 generation.
update matins.ledger
   set starts = greatest(starts - 1, 0)
 where occurrence_id = $1 and scheduled_at = $2 and account = $3 and generation = $4 and state = 'pending';
