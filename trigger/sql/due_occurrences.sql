-- Reads the due instants that nobody has decided, the oldest first, each with the occurrence that has run its time
-- already, if one has. Under the job row's lock. $1 job, $2 now, $3 at most.
with latest as materialized (
    select max(scheduled_at) as claimed
      from matins.occurrence
     where job = $1 and variant = '' and claimed_at is not null)
select o.id, o.scheduled_at,
       case when o.scheduled_at < latest.claimed then (
            select later.id from matins.occurrence later
             where later.job = o.job and later.variant = '' and later.claimed_at is not null
               and later.scheduled_at > o.scheduled_at
             order by later.scheduled_at limit 1) end as covered_by
  from matins.occurrence o, latest
 where o.job = $1 and o.state = 'expected' and o.variant = '' and o.origin = 'schedule'
   and o.scheduled_at <= coalesce($2::timestamptz, clock_timestamp())
 order by o.scheduled_at
 limit $3;
