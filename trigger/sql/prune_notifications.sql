-- Deletes some of what there was to tell of alerts that were over before what is retained, once no channel has it any more.
-- $1 before, $2 at most.
delete from matins.notification
 where id = any (array(
       select n.id
         from matins.notification n
         left join matins.alert a on a.id = n.alert_id
        where n.created_at < least($1::timestamptz, clock_timestamp() - interval '8 days')
          and (a.id is null or a.closed_at < $1)
          and not exists (select from matins.delivery d where d.notification_id = n.id)
        limit $2))
returning 1;
