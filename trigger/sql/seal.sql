-- Ends the fan-out: the total is fixed, and the occurrence can be closed. Nothing for a fan-out that was taken over.
-- $1 id, $2 epoch, $3 cursor, $4 instance, $5 now.
with sealed as (
    update matins.occurrence
       set state = 'running', sealed_at = coalesce($5::timestamptz, clock_timestamp()), lease_until = null
     where id = $1 and epoch = $2 and state = 'claimed' and ending is null and cursor is not distinct from $3
    returning id, job, accounts_read)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, detail)
    select 'sealed', job, id, $4, jsonb_build_object('accounts_read', accounts_read)
      from sealed)
select accounts_read from sealed;
