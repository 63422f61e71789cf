-- Reads the due instants that nobody has decided, the oldest first, each with the occurrence that has run its time
-- already, if one has, whether it is older than what is retained, until when another was in its way if it was made to
-- wait, and when the latest instant that was claimed was claimed. None while everything is held. Under the job row's
-- lock. $1 job, $2 now, $3 at most (null: all).
with clock as (select coalesce($2::timestamptz, clock_timestamp()) as now)
, latest as materialized (
    select max(scheduled_at) as claimed
      from matins.occurrence
     where job = $1 and variant = '' and origin = 'schedule' and claimed_at is not null)
select o.id, o.scheduled_at, o.due_at,
       case when o.scheduled_at < latest.claimed then (
            select later.id from matins.occurrence later
             where later.job = o.job and later.variant = '' and later.origin = 'schedule' and later.claimed_at is not null
               and later.scheduled_at > o.scheduled_at
             order by later.scheduled_at limit 1) end as covered_by,
       coalesce(o.scheduled_at < (select e.retained_from from matins.environment e), false) as beyond_retention,
       case when o.waits_for is not null then coalesce(
            (select former.closed_at from matins.occurrence former where former.id = o.waits_for), clock.now)
       end as waited_until,
       (select last.claimed_at from matins.occurrence last
         where last.job = $1 and last.variant = '' and last.scheduled_at = latest.claimed) as last_claimed_at
  from matins.occurrence o, latest, clock
 where o.job = $1 and o.state = 'expected' and o.variant = '' and o.origin = 'schedule'
   and o.scheduled_at <= clock.now and o.due_at <= clock.now
   and not exists (select 1 from matins.environment e where e.held_since is not null)
 order by o.scheduled_at
 limit $3;
