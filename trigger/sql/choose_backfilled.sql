-- Notes which occurrences a backfill is to run, and in which generation; under the job row's lock.
-- $1 backfill, $2 occurrence ids, $3 generations.
insert into matins.backfill_occurrence (backfill_id, occurrence_id, generation)
select $1, given.id, given.generation
  from unnest($2::bigint[], $3::integer[]) as given (id, generation);
