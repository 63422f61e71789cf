-- Records how a run elsewhere has ended: of several who report it, and of one who closes it for its silence, one finds the
-- epoch that all have read. $1 id, $2 epoch, $3 state (succeeded or failed), $4 reason, $5 run, $6 report, $7 now.
update matins.occurrence o
   set state = $3, reason = $4, run_id = coalesce(o.run_id, $5), report = $6,
       closed_at = greatest(coalesce($7::timestamptz, clock_timestamp()), o.opened_at),
       total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0, lease_until = null
 where o.id = $1 and o.epoch = $2 and o.state = 'claimed' and o.sealed_at is null and o.ending is null
returning o.opened_at, o.closed_at;
