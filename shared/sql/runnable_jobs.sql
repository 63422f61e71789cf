-- Names the jobs that live workers can run: each says so of itself. $1 a worker that is left out.
select distinct said.job
  from matins.instance i
 cross join lateral jsonb_each(i.jobs) as said (job, problem)
 where i.kind = 'worker' and i.id <> $1 and i.stopped_at is null and i.seen_at > clock_timestamp() - interval '1 minute'
   and said.problem = 'null'::jsonb;
