-- Lists the live workers that should have run jobs for themselves and have not: they can, they lived when it was due, and
-- nothing of theirs is there from then or runs still. $1 jobs, $2 due instants, $3 the worker of each, null for all, $4 now.
select given.job, given.due, i.id, i.host
  from unnest($1::text[], $2::timestamptz[], $3::text[]) as given (job, due, worker)
  join matins.instance i
    on i.kind = 'worker' and i.stopped_at is null
   and i.seen_at > coalesce($4::timestamptz, clock_timestamp()) - interval '1 minute'
   and i.jobs ? given.job and i.jobs ->> given.job is null and i.started_at < given.due
   and (given.worker is null or i.id = given.worker)
 where not exists (
       select from matins.occurrence o
        where o.job = given.job and o.variant = '@' || i.id and (o.scheduled_at >= given.due or o.state = 'running'))
 order by given.due, given.job, i.id;
