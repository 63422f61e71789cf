-- Finds, without a lock, the jobs for which this instance has an instant to decide or to attempt.
-- $1 jobs, $2 instance, $3 now.
with clock as (select coalesce($3::timestamptz, clock_timestamp()) as now)
select job.name
  from clock, unnest($1::text[]) as job (name)
 where exists (
       select from matins.occurrence o
        where o.job = job.name and o.state = 'expected' and o.variant = '' and o.origin = 'schedule'
          and o.scheduled_at <= clock.now)
    or exists (
       select from matins.occurrence o
         join matins.instance i on i.id = $2 and o.scheduled_at >= greatest(i.started_at, clock.now - interval '1 day')
        where o.job = job.name and o.variant = '' and o.origin = 'schedule' and o.scheduled_at <= clock.now
          and o.reason is distinct from 'superseded'
          and not exists (
              select from matins.attempt a
               where a.job = o.job and a.scheduled_at = o.scheduled_at and a.variant = o.variant and a.instance = $2));
