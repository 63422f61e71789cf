-- Which code of a job's handler was run twice, and changed nothing the second time: asked for before every worker runs it.
create table matins.trial (
    job      text not null check (job ~ '^[a-z][a-z0-9_-]{0,62}$'),
    mark     text not null check (mark ~ '^[0-9a-f]{64}$'),
    actor    text not null,
    version  text not null,
    tried_at timestamptz not null default clock_timestamp(),
    primary key (job, mark)
);

-- Writes a worker's own occurrence when it is due, with its one row, or with why it does not run: once, whoever tries. It
-- is the only way in which a worker can make an occurrence, and makes none of a job that triggers claim.
create function matins.open_own(
    job text, scheduled_at timestamptz, instance text, region text, revision integer, state text, reason text,
    window_since timestamptz, finish_within interval, tzdata_version text, trace_context text, now timestamptz)
returns table (id bigint, claimed_at timestamptz)
language sql security definer set search_path = pg_catalog, pg_temp as $$
    with decided as (
        select coalesce($12, clock_timestamp()) as now, $6 = 'running' as runs
          from matins.job_revision r
         where r.job = $1 and r.revision = $5 and r.definition ->> 'coordination' = 'every'
           and $6 in ('running', 'skipped', 'missed'))
    , opened as (
        insert into matins.occurrence (
            job, scheduled_at, variant, revision, state, reason, window_since, window_until, tzdata_version, epoch,
            claimed_by, claimed_at, opened_at, sealed_at, finish_by, accounts_read, trace_context)
        select $1, $2, '@' || $3, $5, $6, $7, $8, $2, $10, runs::integer, case when runs then $3 end,
               case when runs then now end, case when runs then now end, case when runs then now end,
               case when runs then now + $9 end, runs::integer, $11
          from decided
         where $2 <= now
        on conflict (job, scheduled_at, variant) do nothing
        returning id, job, scheduled_at, variant, state, reason, claimed_at)
    , attempted as (
        insert into matins.attempt (job, scheduled_at, variant, instance, region, attempted_at, won)
        select job, scheduled_at, variant, $3, $4, claimed_at, true from opened where state = 'running')
    , written as (
        insert into matins.ledger (occurrence_id, scheduled_at, account, position)
        select id, scheduled_at, $3, 1 from opened where state = 'running')
    , audited as (
        insert into matins.audit (kind, job, occurrence_id, instance, reason, detail)
        select told.kind, opened.job, opened.id, $3, opened.reason, told.detail
          from opened
          join (values ('running', 1, 'claim', jsonb_build_object('epoch', 1, 'region', $4)),
                       ('running', 2, 'sealed', jsonb_build_object('accounts_read', 1)),
                       ('skipped', 1, 'skipped', '{}'::jsonb),
                       ('missed', 1, 'missed', '{}'::jsonb)) as told (state, place, kind, detail)
            on told.state = opened.state
         order by told.place)
    select opened.id, opened.claimed_at from opened;
$$;
revoke all on function matins.open_own(
    text, timestamptz, text, text, integer, text, text, timestamptz, interval, text, text, timestamptz) from public;
