-- Finds what should have ended by now and is active, by the index of what is active. $1 now.
with clock as (select coalesce($1::timestamptz, clock_timestamp()) as now)
select o.id, o.job, o.scheduled_at, o.variant, o.state, o.generation, o.opened_at, o.finish_by, o.ending, o.accounts_read,
       j.definition ->> 'coordination' = 'elsewhere' as elsewhere,
       (select count(*) from matins.instance i
         where i.kind = 'worker' and i.stopped_at is null and i.seen_at > clock.now - interval '1 minute') as workers
  from clock
  join matins.occurrence o on o.state in ('claimed', 'running') and o.finish_by < clock.now
  join matins.job j on j.name = o.job
 where j.retired_at is null
 order by o.scheduled_at, o.job;
