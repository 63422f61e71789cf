-- Lists the occurrences of the last 30 days that ended badly, and in which accounts ended their workers: their messages were
-- parked. The latest first. $1 at most.
select o.job, o.scheduled_at, o.variant, o.dead, o.closed_at
  from matins.occurrence o
 where o.state in ('partial', 'failed') and o.closed_at > clock_timestamp() - interval '30 days' and o.dead > 0
 order by o.closed_at desc
 limit $1;
