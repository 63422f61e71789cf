-- Finds, without a lock, the jobs that are called for from outside with an instant that is to be recorded without a run: it
-- was not called in time, a later one has run its time, the job is paused, or it is older than what is retained. What runs
-- elsewhere covers no time but its own.
-- None while everything is held. $1 jobs, $2 now.
with clock as (select coalesce($2::timestamptz, clock_timestamp()) as now)
select j.name
  from clock, matins.job j
 where j.name = any ($1::text[])
   and not exists (select from matins.environment e where e.held_since is not null)
   and exists (
       select from matins.occurrence o
        where o.job = j.name and o.state = 'expected' and o.variant = '' and o.origin = 'schedule'
          and o.scheduled_at <= clock.now and o.due_at <= clock.now
          and (j.paused_at is not null
            or o.due_at < clock.now - make_interval(
                   secs => (j.definition -> 'decisions' ->> 'catch_up_within')::double precision)
            or o.scheduled_at < (select e.retained_from from matins.environment e)
            or j.definition ->> 'coordination' <> 'elsewhere' and exists (
                   select from matins.occurrence later
                    where later.job = o.job and later.variant = '' and later.origin = 'schedule'
                      and later.claimed_at is not null and later.scheduled_at > o.scheduled_at)));
