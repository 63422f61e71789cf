-- Deletes some of the messages that were made before what is retained: none of an alert that was open, since what was told of
-- it last is told again, and none of the last eight days, in which they may wait, and are looked for before they are made.
-- $1 before, $2 at most.
delete from matins.delivery
 where id = any (array(
       select d.id
         from matins.delivery d
         left join matins.notification n on n.id = d.notification_id
         left join matins.alert a on a.id = n.alert_id
        where d.created_at < least($1::timestamptz, clock_timestamp() - interval '8 days')
          and (a.id is null or a.closed_at < $1)
        limit $2))
returning 1;
