-- Records a backfill, with who asked for it and why; of two at once for a job, one is refused by the unique index.
-- $1 job, $2 since, $3 until, $4 mode, $5 reverse, $6 at most active, $7 actor, $8 reason, $9 instance, $10 detail.
with ordered as (
    insert into matins.backfill (job, since, until, mode, reverse, max_active, actor, reason)
    values ($1, $2, $3, $4, $5, $6, $7, $8)
    returning id, job)
, audited as (
    insert into matins.audit (kind, job, instance, actor, actor_kind, reason, detail)
    select 'backfill', job, $9, $7, 'operator', $8, $10::jsonb || jsonb_build_object('backfill', id)
      from ordered)
select id from ordered;
