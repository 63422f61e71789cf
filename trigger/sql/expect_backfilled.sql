-- Has instants that were not run expected again, as a backfill's, each with its own window still; under the job row's lock.
-- $1 ids, $2 revision, $3 instance, $4 actor, $5 reason.
with expected as (
    update matins.occurrence o
       set state = 'expected', reason = null, coalesced_into = null, origin = 'backfill', revision = $2
      from matins.occurrence former
     where o.id = any ($1::bigint[]) and former.id = o.id
       and o.state in ('missed', 'skipped', 'coalesced')
    returning o.id, o.job, former.state, former.reason)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, actor, actor_kind, reason, detail)
    select 'expected', job, id, $3, $4, 'operator', $5, jsonb_build_object('was', state, 'because', reason)
      from expected)
select count(*) from expected;
