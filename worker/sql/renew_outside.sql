-- Renews the lease of an outside call. Only the epoch is asked: an expired lease merely entitles others.
-- $1 occurrence id, $2 its scheduled_at, $3 account, $4 epoch, $5 lease, $6 now.
update matins.ledger
   set lease_until = coalesce($6::timestamptz, clock_timestamp()) + $5::interval
 where occurrence_id = $1 and scheduled_at = $2 and account = $3 and state = 'running' and epoch = $4
returning lease_until;
