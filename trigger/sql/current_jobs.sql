-- Lists the jobs that are not retired, with their current revision. Takes no lock.
select name, revision, paused_at, definition
  from matins.job
 where retired_at is null
 order by name;
