-- Deletes some of the processes that had ended before what is retained. $1 before, $2 at most.
delete from matins.instance
 where id = any (array(select i.id from matins.instance i where i.stopped_at < $1 limit $2))
returning 1;
