-- Finds what was due and should have been claimed by now, by the index of what is expected; of one job the first few, since
-- what an outage of hours leaves of one that is due each minute is one message, not hundreds. What was made to wait is
-- nobody's fault, and is late only by the time since that is over, as what a pause or a hold has kept.
-- $1 at most of one job, $2 now.
with clock as (select coalesce($2::timestamptz, clock_timestamp()) as now)
, late as (
    select o.id, o.job, o.scheduled_at, o.variant, o.due_at, within.start_within,
           j.definition ->> 'coordination' = 'elsewhere' as elsewhere,
           row_number() over (partition by o.job order by o.scheduled_at) as place
      from clock
      join matins.occurrence o on o.state = 'expected' and o.scheduled_at <= clock.now
      join matins.job j on j.name = o.job
     cross join lateral (
           select make_interval(secs => (j.definition -> 'decisions' ->> 'start_within')::double precision)
                  as start_within) within
      left join matins.occurrence former on former.id = o.waits_for
     where o.origin = 'schedule' and o.variant = '' and j.retired_at is null and j.paused_at is null
       and (former.id is null or former.closed_at is not null)
       and greatest(o.due_at, j.resumed_at, former.closed_at, (select w.held_at from matins.watch w))
           + within.start_within < clock.now)
select late.id, late.job, late.scheduled_at, late.variant, late.due_at, late.start_within, late.elsewhere,
       (select count(*) from clock, matins.instance i
         where i.kind = 'trigger' and i.stopped_at is null and i.seen_at > clock.now - interval '1 minute') as triggers
  from late
 where late.place <= $1
 order by late.scheduled_at, late.job;
