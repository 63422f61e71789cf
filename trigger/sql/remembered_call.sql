-- Reads what an earlier delivery of a signed call was answered with, for one that is in time; nothing for one that isn't.
-- $1 caller, $2 webhook id, $3 the call's time, $4 tolerance, $5 now.
with clock as (select coalesce($5::timestamptz, clock_timestamp()) as now)
select c.digest, o.id, o.scheduled_at, o.state
  from clock, matins.signed_call c
  join matins.occurrence o on o.id = c.occurrence_id
 where c.caller = $1 and c.webhook_id = $2
   and $3::timestamptz between clock.now - $4::interval and clock.now + $4::interval;
