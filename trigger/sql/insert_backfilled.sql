-- Plans past instants that have no row, each with its own window; under the job row's lock.
-- $1 job, $2 revision, $3 instants, $4 since when each covers, $5 tzdata version.
insert into matins.occurrence (job, scheduled_at, origin, revision, window_since, window_until, tzdata_version)
select $1, given.instant, 'backfill', $2, given.since, given.instant, $5
  from unnest($3::timestamptz[], $4::timestamptz[]) as given (instant, since)
on conflict (job, scheduled_at, variant) do nothing
returning id;
