-- Writes how far schedules were compared. $1 jobs, $2 revisions, $3 compared through, $4 when next.
insert into matins.comparison as known (job, revision, compared_through, next_at)
select given.job, given.revision, given.compared_through, given.next_at
  from unnest($1::text[], $2::integer[], $3::timestamptz[], $4::timestamptz[])
       as given (job, revision, compared_through, next_at)
 order by given.job
on conflict (job) do update
   set revision = excluded.revision, compared_through = excluded.compared_through, next_at = excluded.next_at;
