-- Reads the present, and since when the oldest occurrence of the schedule that is due waits for its claim: not one of a
-- paused job, nor one that was made to wait. $1 now.
with clock as (select coalesce($1::timestamptz, clock_timestamp()) as now)
select clock.now,
       (select o.due_at
          from matins.occurrence o
          join matins.job j on j.name = o.job and j.paused_at is null and j.retired_at is null
         where o.state = 'expected' and o.origin = 'schedule' and o.scheduled_at <= clock.now and o.due_at <= clock.now
           and not exists (
               select from matins.occurrence former where former.id = o.waits_for and former.closed_at is null)
         order by o.scheduled_at
         limit 1) as due_at
  from clock;
