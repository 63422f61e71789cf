-- Decides which of several deliveries of one signed call goes on: one remembers it, and the others wait here until it has
-- ended. Nothing is remembered where the call's time lies outside of the tolerance by the database's clock.
-- $1 caller, $2 webhook id, $3 digest, $4 the call's time, $5 tolerance, $6 now.
with clock as (select coalesce($6::timestamptz, clock_timestamp()) as now)
insert into matins.signed_call (caller, webhook_id, digest, received_at)
select $1, $2, $3, clock.now
  from clock
 where $4::timestamptz between clock.now - $5::interval and clock.now + $5::interval
on conflict do nothing
returning webhook_id;
