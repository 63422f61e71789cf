-- Past instants that a person has ordered to be run, and what is to be run of each: its first generation, or the next one.
create table matins.backfill (
    id         bigint generated always as identity primary key,
    job        text not null references matins.job (name),
    since      timestamptz not null,
    until      timestamptz not null,
    mode       text not null check (mode in ('missing', 'failed', 'all')),
    reverse    boolean not null,
    max_active integer not null check (max_active > 0),
    state      text not null default 'active' check (state in ('active', 'done', 'cancelled')),
    actor      text not null,
    reason     text not null,
    created_at timestamptz not null default clock_timestamp(),
    ended_at   timestamptz,
    ended_by   text,
    end_reason text,
    check (since <= until),
    check ((state = 'active') = (ended_at is null))
);
create unique index backfill_active on matins.backfill (job) where state = 'active';

create table matins.backfill_occurrence (
    backfill_id   bigint not null references matins.backfill (id),
    occurrence_id bigint not null references matins.occurrence (id),
    generation    integer not null check (generation > 0),
    -- Why it was not run after all.
    left_out      text,
    primary key (backfill_id, occurrence_id)
);
