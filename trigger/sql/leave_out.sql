-- Notes why a backfill doesn't run an occurrence after all; one that waited for it is skipped. Under the job row's lock.
-- $1 backfill, $2 occurrence id, $3 why, $4 instance.
with noted as (
    update matins.backfill_occurrence
       set left_out = $3
     where backfill_id = $1 and occurrence_id = $2
    returning occurrence_id)
, skipped as (
    update matins.occurrence o
       set state = 'skipped', reason = 'backfill: ' || $3::text
      from noted
     where o.id = noted.occurrence_id and o.state = 'expected'
    returning o.id, o.job, o.reason)
insert into matins.audit (kind, job, occurrence_id, instance, reason, detail)
select 'skipped', job, id, $4, reason, jsonb_build_object('backfill', $1::bigint, 'before', 'expected', 'after', 'skipped')
  from skipped;
