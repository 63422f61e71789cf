-- When another version of something began to run: of our services, as each says at its start, and of other systems, as a
-- person or a pipeline says.
create table matins.deploy (
    id       bigint generated always as identity primary key,
    system   text not null check (system <> ''),
    version  text not null check (version <> ''),
    at       timestamptz not null default clock_timestamp(),
    -- Of what a service has said: the marker before it, 0 for the first; null for what was said of it.
    follows  bigint,
    instance text,
    actor    text,
    reason   text,
    check ((follows is null) = (actor is not null)),
    unique (system, follows)
);
create index deploy_at on matins.deploy (at);

-- What the last runs of a job say about those to come, as the watch has judged it last: null where that is nothing.
create table matins.forecast (
    job       text primary key references matins.job (name),
    judged_at timestamptz not null,
    judge_at  timestamptz not null,
    duration  jsonb,
    lag       jsonb
);
create index forecast_judge_at on matins.forecast (judge_at);
create index forecast_standing on matins.forecast (job) where duration is not null or lag is not null;

-- The last success and the next instant of each of many jobs, without reading all that lies between.
create index occurrence_succeeded on matins.occurrence (job, scheduled_at desc) where state = 'succeeded';
create index occurrence_expected_of_job on matins.occurrence (job, scheduled_at) where state = 'expected';
