-- Takes expected instants back that the new definition doesn't have; under the job row's lock.
-- $1 job, $2 revision, $3 instants, $4 instance.
with superseded as (
    update matins.occurrence
       set state = 'skipped', reason = 'superseded', revision = $2
     where job = $1 and variant = '' and scheduled_at = any ($3::timestamptz[]) and state = 'expected'
    returning scheduled_at)
, audited as (
    insert into matins.audit (kind, job, instance, reason, detail)
    select 'superseded', $1, $4, 'the definition has changed',
           jsonb_build_object('revision', $2::integer, 'count', count(*),
                              'first', min(scheduled_at), 'last', max(scheduled_at),
                              'before', 'expected', 'after', 'skipped')
      from superseded
    having count(*) > 0)
select count(*) from superseded;
