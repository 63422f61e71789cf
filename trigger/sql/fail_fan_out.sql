-- Counts a failure of the accounts' source; the next attempt is anybody's after a pause, and after the last one dispatch
-- ends. Nothing for a fan-out that was taken over.
-- $1 id, $2 epoch, $3 error, $4 attempts allowed, $5 first pause (it doubles), $6 instance, $7 now.
with failed as (
    update matins.occurrence
       set fan_out_attempts = fan_out_attempts + 1, fan_out_error = $3,
           lease_until = coalesce($7::timestamptz, clock_timestamp()) + $5::interval * power(2, fan_out_attempts),
           ending = case when fan_out_attempts + 1 >= $4 then 'fan_out' end,
           ending_reason = case when fan_out_attempts + 1 >= $4 then $3 end,
           epoch = epoch + case when fan_out_attempts + 1 >= $4 then 1 else 0 end
     where id = $1 and epoch = $2 and state = 'claimed' and ending is null
    returning id, job, fan_out_attempts, ending)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, reason, detail)
    select 'fan_out_failed', job, id, $6, $3, jsonb_build_object('attempts', fan_out_attempts, 'ending', ending)
      from failed)
select fan_out_attempts, ending from failed;
