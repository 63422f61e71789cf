-- Records that another version of a system runs since a time, with who says so, and the entry in the audit trail.
-- $1 system, $2 version, $3 at, $4 actor, $5 reason, $6 instance.
with marked as (
    insert into matins.deploy (system, version, at, actor, reason)
    values ($1, $2, coalesce($3::timestamptz, clock_timestamp()), $4, $5)
    returning id, system, version, at, actor, reason)
, audited as (
    insert into matins.audit (kind, instance, actor, actor_kind, reason, detail)
    select 'deploy_marked', $6, actor, 'operator', coalesce(reason, 'deployed'),
           jsonb_build_object('system', system, 'version', version, 'at', at)
      from marked)
select system, version, at, actor, reason from marked;
