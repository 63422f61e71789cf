-- Reads the open alerts that a channel was told of, each with what was told last, for one that has to hear of them again.
-- $1 channel, $2 at most.
select last.notification_id, last.event, n.body, n.created_at
  from matins.alert a
 cross join lateral (
    select d.notification_id, d.event
      from matins.delivery d join matins.notification told on told.id = d.notification_id
     where told.alert_id = a.id and d.channel = $1 and d.state = 'delivered'
     order by told.id desc
     limit 1) as last
  join matins.notification n on n.id = last.notification_id
 where a.closed_at is null
 order by a.id
 limit $2;
