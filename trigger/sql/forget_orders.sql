-- Puts the pseudonym into the reasons that people gave for what they ordered, outside of the audit trail.
-- $1 account, $2 pseudonym.
with backfills as (
    update matins.backfill
       set reason = matins.redact(reason, $1, $2), end_reason = matins.redact(end_reason, $1, $2)
     where strpos(concat_ws(' ', reason, end_reason), $1) > 0
    returning 1)
, left_out as (
    update matins.backfill_occurrence
       set left_out = matins.redact(left_out, $1, $2)
     where strpos(left_out, $1) > 0
    returning 1)
, jobs as (
    update matins.job
       set pause_reason = matins.redact(pause_reason, $1, $2), retire_reason = matins.redact(retire_reason, $1, $2)
     where strpos(concat_ws(' ', pause_reason, retire_reason), $1) > 0
    returning 1)
, windows as (
    update matins.maintenance
       set reason = matins.redact(reason, $1, $2)
     where strpos(reason, $1) > 0
    returning 1)
, deploys as (
    update matins.deploy
       set reason = matins.redact(reason, $1, $2)
     where strpos(reason, $1) > 0
    returning 1)
, holds as (
    update matins.environment
       set held_reason = matins.redact(held_reason, $1, $2)
     where strpos(held_reason, $1) > 0
    returning 1)
select (select count(*) from backfills) + (select count(*) from left_out) + (select count(*) from jobs)
       + (select count(*) from windows) + (select count(*) from deploys) + (select count(*) from holds);
