-- Deletes some of the watermarks of publishing that belong to pruned ledgers. $1 before, $2 at most.
delete from matins.publication
 where ctid = any (array(
       select p.ctid
         from matins.occurrence o
         join matins.publication p on p.occurrence_id = o.id
        where o.scheduled_at < $1
        limit $2))
returning 1;
