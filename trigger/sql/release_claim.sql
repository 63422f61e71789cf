-- Lets another trigger go on after a pause, and says so: a holder that gives its claim back has not failed.
-- $1 id, $2 epoch, $3 pause, $4 now.
with released as (
    update matins.occurrence
       set lease_until = coalesce($4::timestamptz, clock_timestamp()) + $3::interval
     where id = $1 and epoch = $2 and state = 'claimed' and ending is null
    returning id, job, claimed_by, epoch, accounts_read)
insert into matins.audit (kind, job, occurrence_id, instance, detail)
select 'released', job, id, claimed_by, jsonb_build_object('epoch', epoch, 'accounts_read', accounts_read)
  from released;
