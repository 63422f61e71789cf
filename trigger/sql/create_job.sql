-- Makes a job known; of several first starts one inserts, the others find its row. Nothing before now is ever due.
-- $1 name, $2 definition, $3 fingerprint, $4 now.
insert into matins.job (name, revision, definition, fingerprint, known_since, planned_through)
select $1, 1, $2, $3, clock.now, clock.now
  from (select coalesce($4::timestamptz, clock_timestamp()) as now) clock
on conflict (name) do nothing
returning planned_through;
