-- Finds which instants of jobs have no row, each with how far its job is planned. Not one whose neighbour was placed by other
-- time-zone data than ours: the schedule may have had it elsewhere. $1 jobs, $2 instants, $3 time-zone data.
select given.job, given.instant, j.planned_through
  from unnest($1::text[], $2::timestamptz[]) as given (job, instant)
  join matins.job j on j.name = given.job
 where not exists (
       select from matins.occurrence o
        where o.job = given.job and o.scheduled_at = given.instant and o.variant = '')
   and coalesce((
       select o.tzdata_version from matins.occurrence o
        where o.job = given.job and o.scheduled_at > given.instant and o.variant = ''
        order by o.scheduled_at limit 1), $3::text) = $3::text
   and j.retired_at is null and j.paused_at is null
 order by given.instant, given.job;
