-- Writes how an alert stands, and says in the audit trail who decided it and why, with what it was before and is now; under
-- the alert row's lock.
-- $1 the alert's number, $2 next notice at, $3 acknowledged at, $4 acknowledged by, $5 acknowledge reason, $6 silenced until,
-- $7 silenced by, $8 silence reason, $9 kind of the act, $10 instance, $11 actor, $12 reason, $13 detail.
with written as (
    update matins.alert
       set next_notice_at = $2, acknowledged_at = $3, acknowledged_by = $4, acknowledge_reason = $5, silenced_until = $6,
           silenced_by = $7, silence_reason = $8
     where id = $1
    returning job, occurrence_id)
insert into matins.audit (kind, job, occurrence_id, instance, actor, actor_kind, reason, detail)
select $9::text, job, occurrence_id, $10::text, $11::text, 'operator', $12::text, $13::jsonb
  from written;
