-- Records that due instants are not run; under the job row's lock.
-- $1 ids, $2 state (skipped or missed), $3 reason, $4 instance, $5 what the reason refers to.
with decided as (
    update matins.occurrence
       set state = $2::text, reason = $3
     where id = any ($1::bigint[]) and state = 'expected'
    returning id, job)
insert into matins.audit (kind, job, occurrence_id, instance, reason, detail)
select $2::text, job, id, $4, $3,
       jsonb_strip_nulls(jsonb_build_object('because_of', $5::text, 'before', 'expected', 'after', $2::text))
  from decided;
