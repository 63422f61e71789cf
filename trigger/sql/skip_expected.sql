-- Records that what is expected of a job is not run: all of it, or what the schedule had due until an instant; under the
-- job row's lock. Gives how many there were. $1 job, $2 reason, $3 until (null: all), $4 instance, $5 actor, $6 why.
with skipped as (
    update matins.occurrence o
       set state = 'skipped', reason = $2
     where o.job = $1 and o.state = 'expected'
       and ($3::timestamptz is null or (o.scheduled_at <= $3 and o.origin = 'schedule'))
    returning o.id, o.job)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, actor, actor_kind, reason, detail)
    select 'skipped', job, id, $4, $5, 'operator', $2,
           jsonb_build_object('because_of', $6::text, 'before', 'expected', 'after', 'skipped')
      from skipped)
select count(*) from skipped;
