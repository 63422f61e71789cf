-- Adds a planned maintenance and says so in the audit trail, unless the very same is planned already; gives its id. Two who
-- add the same at the same moment may both: two that are alike do what one does.
-- $1 job (null: all), $2 since, $3 until, $4 actor, $5 reason, $6 instance.
with same as (
    select id from matins.maintenance where job is not distinct from $1::text and since = $2 and until = $3 limit 1)
, added as (
    insert into matins.maintenance (job, since, until, actor, reason)
    select $1, $2, $3, $4, $5 where not exists (select from same)
    returning id, job, since, until)
, audited as (
    insert into matins.audit (kind, job, instance, actor, actor_kind, reason, detail)
    select 'maintenance_add', job, $6, $4, 'operator', $5,
           jsonb_build_object('maintenance', id, 'after', jsonb_build_object('since', since, 'until', until)) from added)
select id, true as added from added union all select id, false from same;
