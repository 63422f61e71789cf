-- Tells whether another live trigger holds a job's current revision, or has made it so lately that it couldn't tell yet.
-- $1 job, $2 this instance, $3 now.
with clock as (select coalesce($3::timestamptz, clock_timestamp()) as now)
select j.fingerprint,
       exists (
           select from matins.instance i
            where i.kind = 'trigger' and i.id <> $2 and i.stopped_at is null
              and (i.jobs ->> j.name)::integer = j.revision and i.seen_at > clock.now - interval '1 minute')
       or exists (
           select from matins.job_revision r
            where r.job = j.name and r.revision = j.revision and r.recorded_by <> $2
              and r.effective_from > clock.now - interval '1 minute') as held
  from clock, matins.job j
 where j.name = $1;
