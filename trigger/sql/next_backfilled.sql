-- Reads the occurrence that a backfill starts next. Under the job row's lock. $1 backfill, $2 whether the latest is first.
select o.id, o.scheduled_at, o.state,
       o.scheduled_at < (select e.retained_from from matins.environment e) as pruned
  from matins.backfill_occurrence i
  join matins.occurrence o on o.id = i.occurrence_id
 where i.backfill_id = $1 and i.left_out is null and (o.state = 'expected' or o.generation < i.generation)
 order by case when $2::boolean then o.scheduled_at end desc, o.scheduled_at
 limit 1;
