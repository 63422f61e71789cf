-- Finds the active occurrences of which nothing was settled, published or read for as long as their job says, by default
-- for twice its handler's timeout and for ten minutes at least. One whose open accounts wait for their next try is not stuck;
-- of many, the first of the fan-out are looked at. What a hold has stopped stands still only from its end. What runs
-- elsewhere tells of no progress. $1 now.
with clock as (select coalesce($1::timestamptz, clock_timestamp()) as now)
select o.id, o.job, o.scheduled_at, o.variant, o.state, o.generation, o.accounts_read, since.moved_at, within.no_progress_within,
       (select count(*) from matins.instance i
         where i.kind = 'worker' and i.stopped_at is null and i.seen_at > clock.now - interval '1 minute') as workers,
       (select count(*) from matins.instance i
         where i.kind = 'trigger' and i.stopped_at is null and i.seen_at > clock.now - interval '1 minute') as triggers
  from clock
  join matins.occurrence o on o.state in ('claimed', 'running')
  join matins.progress p on p.occurrence_id = o.id
  join matins.job j on j.name = o.job
 cross join lateral (
       select make_interval(secs => coalesce(
           (j.definition -> 'decisions' ->> 'no_progress_within')::double precision,
           greatest(600, 2 * (j.definition -> 'handler' ->> 'timeout')::double precision))) as no_progress_within) within
 cross join lateral (
       select greatest(p.moved_at, (select w.held_at from matins.watch w)) as moved_at) since
 cross join lateral (
       select count(*) as open,
              count(*) filter (
                  where first.not_before is null or first.not_before < clock.now - within.no_progress_within) as due
         from (select l.not_before from matins.ledger l
                where l.occurrence_id = o.id and l.scheduled_at = o.scheduled_at and l.finished_at is null
                order by l.position limit 1000) first) account
 where j.retired_at is null and j.definition ->> 'coordination' is distinct from 'elsewhere'
   and since.moved_at + within.no_progress_within < clock.now
   and (account.open = 0 or account.due > 0)
 order by o.scheduled_at, o.job;
