-- Lists what was to be told of an alert, in order, each with what became of it on each channel. $1 the alert's number.
select n.id, n.event, n.created_at, d.channel, d.state, d.attempts, d.ended_at, d.error
  from matins.notification n
  left join matins.delivery d on d.notification_id = n.id
 where n.alert_id = $1
 order by n.id, d.channel;
