-- Records what due instants wait for, once for each: while they wait they are not missed. Under the job row's lock.
-- $1 ids, $2 id of the occurrence in the way, $3 instance, $4 how that is written.
with waiting as (
    update matins.occurrence
       set waits_for = $2
     where id = any ($1::bigint[]) and state = 'expected' and waits_for is distinct from $2
    returning id, job)
insert into matins.audit (kind, job, occurrence_id, instance, reason, detail)
select 'waits', job, id, $3, 'overlap', jsonb_build_object('because_of', $4::text)
  from waiting;
