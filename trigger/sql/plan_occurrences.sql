-- Writes due instants ahead; a row that is there stays, except that a superseded one that is planned again is expected
-- again. Under the job row's lock.
-- $1 job, $2 revision, $3 instants, $4 since when each covers, $5 tzdata version, $6 now.
with planned as (
    insert into matins.occurrence as known (job, scheduled_at, revision, window_since, window_until, tzdata_version)
    select $1, given.instant, $2, given.since, given.instant, $5
      from unnest($3::timestamptz[], $4::timestamptz[]) as given (instant, since)
    on conflict (job, scheduled_at, variant) do update
       set state = 'expected', reason = null, revision = excluded.revision,
           window_since = excluded.window_since, tzdata_version = excluded.tzdata_version
     where known.state = 'skipped' and known.reason = 'superseded'
       and known.scheduled_at > coalesce($6::timestamptz, clock_timestamp())
    returning id)
select count(*) from planned;
