-- Records that the time of earlier instants is run by another occurrence; under the job row's lock.
-- $1 ids, $2 ids of those that they are coalesced into, $3 instance.
with coalesced as (
    update matins.occurrence o
       set state = 'coalesced', coalesced_into = given.target
      from unnest($1::bigint[], $2::bigint[]) as given (id, target)
     where o.id = given.id and o.state = 'expected'
    returning o.id, o.job, o.coalesced_into)
insert into matins.audit (kind, job, occurrence_id, instance, detail)
select 'coalesced', job, id, $3, jsonb_build_object('into', coalesced_into, 'before', 'expected', 'after', 'coalesced')
  from coalesced;
