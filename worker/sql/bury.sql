-- An account whose message was dead-lettered, and whose ledger shows that it has ended its workers, is dead.
-- $1 occurrence id, $2 its scheduled_at, $3 account, $4 generation, $5 starts that were allowed, $6 reason.
update matins.ledger
   set state = 'dead', epoch = epoch + 1, finished_at = clock_timestamp(), lease_until = null,
       error_class = 'killed_worker', error = $6
 where occurrence_id = $1 and scheduled_at = $2 and account = $3 and generation = $4
   and state = 'pending' and starts >= $5
returning epoch;
