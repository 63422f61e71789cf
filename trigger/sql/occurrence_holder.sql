-- Reads what became of an instant, for who comes too late. $1 job, $2 scheduled_at, $3 variant, $4 now.
select id, origin, state, reason, claimed_by, claimed_at,
       due_at <= coalesce($4::timestamptz, clock_timestamp()) as due,
       (select e.retained_from from matins.environment e where scheduled_at < e.retained_from) as pruned_before,
       (select e.held_reason from matins.environment e) as held
  from matins.occurrence
 where job = $1 and scheduled_at = $2 and variant = $3;
