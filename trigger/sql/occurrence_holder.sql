-- Reads what became of an instant, for who comes too late. $1 job, $2 scheduled_at, $3 variant, $4 now.
select state, reason, claimed_by, claimed_at, scheduled_at <= coalesce($4::timestamptz, clock_timestamp()) as due
  from matins.occurrence
 where job = $1 and scheduled_at = $2 and variant = $3;
