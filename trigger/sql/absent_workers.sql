-- Lists the live workers that should have run a job for themselves and have not: they can, they lived when it was due, and
-- nothing of theirs is there from then or runs still. $1 job, $2 due instant.
select i.id
  from matins.instance i
 where i.kind = 'worker' and i.stopped_at is null and i.seen_at > clock_timestamp() - interval '1 minute'
   and i.jobs ? $1 and i.jobs ->> $1 is null and i.started_at < $2
   and not exists (
       select from matins.occurrence o
        where o.job = $1 and o.variant = '@' || i.id and (o.scheduled_at >= $2 or o.state = 'running'))
 order by i.started_at;
