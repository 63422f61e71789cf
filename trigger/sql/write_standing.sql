-- Writes whether a job may fire, and says in the audit trail who decided it and why, with what it was before and is now;
-- under the job row's lock.
-- $1 job, $2 paused at, $3 paused by, $4 pause reason, $5 meanwhile, $6 resumed at, $7 retired at, $8 retired by,
-- $9 retire reason, $10 kind, $11 instance, $12 actor, $13 reason, $14 detail.
with written as (
    update matins.job
       set paused_at = $2, paused_by = $3, pause_reason = $4, meanwhile = $5, resumed_at = $6, retired_at = $7,
           retired_by = $8, retire_reason = $9
     where name = $1
    returning name)
insert into matins.audit (kind, job, instance, actor, actor_kind, reason, detail)
select $10::text, name, $11::text, $12::text, 'operator', $13::text, $14::jsonb
  from written;
