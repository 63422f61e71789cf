-- Says that a process lives, and counts how often it has said so; gives when it did last, as the database remembers. A
-- process that was held for dead because it was frozen is alive again. $1 id, $2 by how many seconds its clock was ahead.
with before as materialized (select seen_at from matins.instance where id = $1)
update matins.instance
   set seen_at = clock_timestamp(), stopped_at = null, beats = beats + 1, skew = $2
 where id = $1
returning beats, (select seen_at from before) as seen_before, clock_timestamp() as now;
