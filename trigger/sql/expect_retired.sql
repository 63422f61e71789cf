-- Has the future instants that a retirement had skipped expected again, by the current definition; under the job row's
-- lock. $1 job, $2 revision, $3 now, $4 instance, $5 actor.
with expected as (
    update matins.occurrence o
       set state = 'expected', reason = null, revision = $2
     where o.job = $1 and o.variant = '' and o.state = 'skipped' and o.reason = 'retired' and o.scheduled_at > $3
    returning o.id, o.job)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, actor, actor_kind, reason, detail)
    select 'expected', job, id, $4, $5, 'operator', 'unretired', jsonb_build_object('was', 'skipped', 'because', 'retired')
      from expected)
select count(*) from expected;
