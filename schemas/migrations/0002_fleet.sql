-- Who attempts, who lives, who holds what, and who did what.
-- Each live trigger attempts each instant once, also when it finds it taken.
create table matins.attempt (
    job          text not null,
    scheduled_at timestamptz not null,
    variant      text not null default '',
    instance     text not null,
    region       text not null default '',
    attempted_at timestamptz not null default clock_timestamp(),
    won          boolean not null default false,
    primary key (job, scheduled_at, variant, instance)
);

-- A process, known by a random id made at its start.
create table matins.instance (
    id             text primary key,
    kind           text not null check (kind in ('trigger', 'worker')),
    host           text not null,
    version        text not null,
    region         text not null default '',
    message_version integer not null,
    tzdata_version text not null,
    -- triggers: job -> revision; workers: job -> null, or why its handler could not be imported
    jobs           jsonb not null default '{}',
    started_at     timestamptz not null default clock_timestamp(),
    seen_at        timestamptz not null default clock_timestamp(),
    stopped_at     timestamptz
);

-- Rights that one process holds for a time: publishing a job, sweeping a job.
create table matins.lease (
    name   text primary key,
    holder text not null,
    epoch  bigint not null default 1,
    until  timestamptz not null
);

-- How far the workers have got in a queue: tells a lost message from a late one.
create table matins.work_queue (
    name            text primary key,
    started_through timestamptz,
    empty_at        timestamptz
);

-- Who did what, when and why. Rows are only ever added.
create table matins.audit (
    id            bigint generated always as identity primary key,
    at            timestamptz not null default clock_timestamp(),
    kind          text not null,
    job           text,
    occurrence_id bigint,
    instance      text,
    actor         text,
    reason        text,
    detail        jsonb not null default '{}'
);
create index audit_occurrence on matins.audit (occurrence_id, id);
