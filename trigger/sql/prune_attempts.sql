-- Deletes some of the attempts to claim what is older than what is retained; by job, as they are indexed.
-- $1 before, $2 at most.
delete from matins.attempt
 where ctid = any (array(
       select old.ctid
         from matins.job j
        cross join lateral (
              select a.ctid from matins.attempt a where a.job = j.name and a.scheduled_at < $1 limit $2) old
        limit $2))
returning 1;
