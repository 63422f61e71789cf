-- Reads the messages that wait, and those that were given up of late, the latest first. $1 days to look back for these,
-- $2 at most.
select d.id, d.channel, d.event, d.state, d.created_at, d.attempts, d.not_before, d.ended_at, d.error, n.body,
       o.job, o.scheduled_at, o.variant
  from matins.delivery d
  left join matins.notification n on n.id = d.notification_id
  left join matins.occurrence o on o.id = d.occurrence_id
 where d.state = 'waiting' or (d.state = 'given_up' and d.ended_at > clock_timestamp() - make_interval(days => $1))
 order by d.id desc
 limit $2;
