-- Reads, for each of the jobs, how long it is from the last instant of its schedule to the next, and what is known of the
-- last scheduled run that has ended, if it is among the last 100 instants: who attempted it and who won it, how long after
-- it was due it was claimed, what its first generation took where that went through, and its accounts by outcome. Of what
-- each worker runs for itself the slowest is read. $1 jobs, $2 now.
with clock as (select coalesce($2::timestamptz, clock_timestamp()) as now)
select job.name as job,
       extract(epoch from upcoming.scheduled_at - latest.scheduled_at)::double precision as interval_seconds,
       case when run.claimed_at > run.due_at then extract(epoch from run.claimed_at - run.due_at)
            when run.claimed_at is not null then 0 end::double precision as lag_seconds,
       case when coalesce(run.report -> 'generations' -> 0 ->> 'state', run.state) in ('succeeded', 'partial') then
            extract(epoch from coalesce((run.report -> 'generations' -> 0 ->> 'closed_at')::timestamptz, run.closed_at)
                               - run.claimed_at)::double precision end as seconds,
       run.succeeded, run.failed, run.dead, run.cancelled, tally.attempts, tally.wins
  from clock
 cross join unnest($1::text[]) as job (name)
  left join lateral (
       select o.scheduled_at
         from matins.occurrence o
        where o.job = job.name and o.scheduled_at > clock.now and o.origin = 'schedule'
          and coalesce(o.reason, '') not in ('superseded', 'calendar')
        order by o.scheduled_at
        limit 1) upcoming on true
  left join lateral (
       select o.scheduled_at
         from matins.occurrence o
        where o.job = job.name and o.scheduled_at <= clock.now and o.origin = 'schedule'
          and coalesce(o.reason, '') not in ('superseded', 'calendar')
        order by o.scheduled_at desc
        limit 1) latest on true
  left join lateral (
       select recent.*
         from (select o.*
                 from matins.occurrence o
                where o.job = job.name and o.scheduled_at <= clock.now and o.origin = 'schedule'
                order by o.scheduled_at desc
                limit 100) recent
        where recent.claimed_at is not null and recent.closed_at is not null
        order by recent.scheduled_at desc, recent.closed_at - recent.claimed_at desc
        limit 1) run on true
  left join lateral (
       select count(*) as attempts, count(*) filter (where a.won) as wins
         from matins.attempt a
        where a.job = job.name and a.scheduled_at = run.scheduled_at and (a.variant = '' or a.variant like '@%')
       having count(*) > 0) tally on true
 order by job.name;
