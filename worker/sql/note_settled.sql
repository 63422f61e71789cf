-- Says of which occurrences a worker has settled accounts since its last sign of life: they get on. It waits for nobody: a
-- look holds these rows to its end. Gives those of which it is to be said again; one that no look has met yet is not told
-- of, since it counts from when it is met. $1 occurrence ids.
with free as materialized (
    select p.occurrence_id
      from matins.progress p
     where p.occurrence_id = any ($1::bigint[])
     order by p.occurrence_id
       for update of p skip locked)
, told as (
    update matins.progress p
       set moved_at = greatest(p.moved_at, clock_timestamp())
      from free
     where p.occurrence_id = free.occurrence_id)
select p.occurrence_id
  from matins.progress p
 where p.occurrence_id = any ($1::bigint[])
   and not exists (select from free where free.occurrence_id = p.occurrence_id);
