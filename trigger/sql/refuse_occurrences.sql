-- Records instants of the new definition whose work an earlier occurrence has already claimed; under the job row's lock.
-- $1 job, $2 revision, $3 instants, $4 since when each would cover, $5 tzdata version, $6 instance.
with refused as (
    insert into matins.occurrence (job, scheduled_at, state, reason, revision, window_since, window_until, tzdata_version)
    select $1, given.instant, 'skipped', 'superseded', $2, given.since, given.instant, $5
      from unnest($3::timestamptz[], $4::timestamptz[]) as given (instant, since)
    on conflict (job, scheduled_at, variant) do nothing
    returning scheduled_at)
insert into matins.audit (kind, job, instance, reason, detail)
select 'superseded', $1, $6, 'their work was claimed under the former definition',
       jsonb_build_object('revision', $2::integer, 'count', count(*),
                          'first', min(scheduled_at), 'last', max(scheduled_at),
                          'after', 'skipped')
  from refused
having count(*) > 0;
