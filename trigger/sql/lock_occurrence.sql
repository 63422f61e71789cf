-- Reads an occurrence for an operator's act, and keeps it from others who act; the job row's lock is held already.
-- $1 job, $2 scheduled_at, $3 variant, $4 now.
select o.id, o.state, o.reason, o.generation, o.ending, o.ending_reason, o.sealed_at, o.claimed_at, o.closed_at,
       o.report, o.succeeded, o.failed, o.dead, o.cancelled, coalesce($4::timestamptz, clock_timestamp()) as now,
       (select e.retained_from from matins.environment e where o.scheduled_at < e.retained_from) as pruned_before,
       (select e.held_reason from matins.environment e) as held
  from matins.occurrence o
 where o.job = $1 and o.scheduled_at = $2 and o.variant = $3
   for no key update of o;
