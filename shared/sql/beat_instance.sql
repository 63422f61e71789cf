-- Says that a process lives. $1 id. A process that was held for dead because it was frozen is alive again.
update matins.instance set seen_at = clock_timestamp(), stopped_at = null where id = $1;
