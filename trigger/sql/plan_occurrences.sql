-- Writes instants ahead, those that are due and those that the job's calendar leaves out; a row that is there stays, except
-- that one that was superseded or left out is what the plan now says. Under the job row's lock.
-- $1 job, $2 revision, $3 instants, $4 since when each covers, $5 when each is due, $6 which are left out,
-- $7 tzdata version, $8 now, $9 instance.
with planned as (
    insert into matins.occurrence as known (job, scheduled_at, due_at, state, reason, revision, window_since,
                                             window_until, tzdata_version)
    select $1, given.instant, given.due_at, case when given.left_out then 'skipped' else 'expected' end,
           case when given.left_out then 'calendar' end, $2, given.since, given.instant, $7
      from unnest($3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::boolean[])
           as given (instant, since, due_at, left_out)
    on conflict (job, scheduled_at, variant) do update
       set state = excluded.state, reason = excluded.reason, revision = excluded.revision, due_at = excluded.due_at,
           window_since = excluded.window_since, tzdata_version = excluded.tzdata_version
     where known.state = 'skipped' and known.reason in ('superseded', 'calendar')
       and known.scheduled_at > coalesce($8::timestamptz, clock_timestamp())
    returning scheduled_at, state, reason, xmax <> 0 as was_there)
, audited as (
    insert into matins.audit (kind, job, instance, reason, detail)
    select state, $1, $9, coalesce(reason, 'the definition has changed'),
           jsonb_build_object('revision', $2::integer, 'count', count(*),
                              'first', min(scheduled_at), 'last', max(scheduled_at),
                              'before', case when was_there then 'skipped' end, 'after', state)
      from planned
     where state = 'skipped' or was_there
     group by state, reason, was_there)
select count(*) from planned;
