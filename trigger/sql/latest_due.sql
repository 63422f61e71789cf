-- Finds the latest instant of a job that is due, whatever became of it: at-least-once calls then claim it once. With it,
-- whether it is no later than the job's start_within, how long it is until the next, and who attempts the job. $1 job,
-- $2 now.
with clock as (select coalesce($2::timestamptz, clock_timestamp()) as now)
select latest.scheduled_at, j.definition -> 'decisions' -> 'start_within' as start_within,
       j.definition ->> 'coordination' as coordination,
       coalesce(clock.now - latest.due_at
                <= make_interval(secs => (j.definition -> 'decisions' ->> 'start_within')::double precision), false) as in_time,
       (select min(o.due_at) from matins.occurrence o
         where o.job = j.name and o.variant = '' and o.origin = 'schedule' and o.state = 'expected'
           and o.due_at > clock.now) - clock.now as until_next
  from clock, matins.job j
  left join lateral (
       select o.scheduled_at, o.due_at from matins.occurrence o
        where o.job = j.name and o.variant = '' and o.origin = 'schedule' and coalesce(o.reason, '') not in ('superseded', 'calendar')
          and o.due_at <= (select now from clock)
        order by o.scheduled_at desc
        limit 1) latest on true
 where j.name = $1;
