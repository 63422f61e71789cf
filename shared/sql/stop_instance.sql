-- Says that a process has ended. $1 id.
update matins.instance set stopped_at = clock_timestamp() where id = $1 and stopped_at is null;
