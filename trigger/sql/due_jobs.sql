-- Finds, without a lock, the jobs for which this instance has an instant to decide or to attempt.
-- None while everything is held, or the job's pause holds what is due: then nothing is decided.
-- $1 jobs, $2 instance, $3 how long ago it must have been due, $4 also those that another has taken, $5 now.
with clock as (select coalesce($5::timestamptz, clock_timestamp()) - $3::interval as now)
select job.name
  from clock, unnest($1::text[]) as job (name)
 where not exists (select 1 from matins.environment e where e.held_since is not null)
   and not exists (
       select from matins.job j where j.name = job.name and j.paused_at is not null and j.meanwhile = 'hold')
   and (exists (
       select from matins.occurrence o
        where o.job = job.name and o.state = 'expected' and o.variant = '' and o.origin = 'schedule'
          and o.scheduled_at <= clock.now and o.due_at <= clock.now)
    or $4::boolean and exists (
       select from matins.occurrence o
         join matins.instance i on i.id = $2 and o.scheduled_at >= greatest(i.started_at, clock.now - interval '1 day')
        where o.job = job.name and o.variant = '' and o.origin = 'schedule' and o.scheduled_at <= clock.now
          and o.due_at <= clock.now and coalesce(o.reason, '') not in ('superseded', 'calendar')
          and not exists (
              select from matins.attempt a
               where a.job = o.job and a.scheduled_at = o.scheduled_at and a.variant = o.variant and a.instance = $2)));
