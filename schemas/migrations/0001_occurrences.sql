-- The tables of one environment: what was due, who claimed it, what became of each account.
create schema if not exists matins;

-- One row: the environment that this database belongs to, and the topology that migrate declared in its broker.
create table matins.environment (
    singleton  boolean primary key default true check (singleton),
    name       text not null check (name <> ''),
    topology   jsonb,
    created_at timestamptz not null default clock_timestamp()
);

-- A job as the fleet declares it now. Its row's lock orders every decision about the job.
create table matins.job (
    name            text primary key check (name ~ '^[a-z][a-z0-9_-]{0,62}$'),
    revision        integer not null check (revision > 0),
    definition      jsonb not null,
    fingerprint     text not null,
    known_since     timestamptz not null,
    planned_through timestamptz not null,
    paused_at       timestamptz,
    retired_at      timestamptz
);

-- Every definition that a job has had: planning for a past time uses the definition of that time.
create table matins.job_revision (
    job            text not null references matins.job (name),
    revision       integer not null check (revision > 0),
    definition     jsonb not null,
    fingerprint    text not null,
    effective_from timestamptz not null,
    recorded_by    text not null,
    primary key (job, revision)
);

create table matins.occurrence (
    id               bigint generated always as identity primary key,
    job              text not null references matins.job (name),
    scheduled_at     timestamptz not null check (scheduled_at = date_trunc('second', scheduled_at)),
    -- '' for the scheduled run; anything else is an identity beside it: an ad-hoc run, or one instance of an `every` job.
    variant          text not null default '',
    origin           text not null default 'schedule' check (origin in ('schedule', 'ad_hoc', 'backfill')),
    state            text not null default 'expected' check (state in (
                         'expected', 'claimed', 'running', 'succeeded', 'partial', 'failed', 'cancelled',
                         'skipped', 'coalesced', 'missed')),
    reason           text,
    revision         integer not null,
    window_since     timestamptz not null,
    window_until     timestamptz not null,
    tzdata_version   text not null,
    generation       integer not null default 1 check (generation > 0),
    epoch            bigint not null default 0 check (epoch >= 0),
    coalesced_into   bigint references matins.occurrence (id),
    fired_by         text,
    fire_reason      text,
    claimed_by       text,
    claimed_at       timestamptz,
    lease_until      timestamptz,
    cursor           text,
    accounts_read    bigint not null default 0,
    fan_out_attempts integer not null default 0,
    fan_out_error    text,
    sealed_at        timestamptz,
    -- Dispatch is over: pending accounts become cancelled, and the ordinary close writes the state that belongs to it.
    ending           text check (ending in ('cancel', 'deadline', 'fan_out')),
    ending_reason    text,
    finish_by        timestamptz,
    opened_at        timestamptz,
    closed_at        timestamptz,
    total            bigint,
    succeeded        bigint,
    failed           bigint,
    dead             bigint,
    cancelled        bigint,
    report           jsonb,
    trace_context    text not null default '',
    unique (job, scheduled_at, variant),
    check (window_since <= window_until),
    check ((state in ('claimed', 'running', 'succeeded', 'partial', 'failed', 'cancelled')) = (claimed_at is not null)),
    check ((state = 'coalesced') = (coalesced_into is not null)),
    check (state not in ('skipped', 'missed', 'cancelled') or reason is not null),
    check (state <> 'running' or sealed_at is not null),
    check (state <> 'claimed' or sealed_at is null),
    check (state not in ('succeeded', 'partial', 'failed', 'cancelled') or (
               closed_at is not null and report is not null
               and total = succeeded + failed + dead + cancelled))
);
create index occurrence_expected on matins.occurrence (scheduled_at) where state = 'expected';
create index occurrence_active on matins.occurrence (job, id) where state in ('claimed', 'running');
create index occurrence_recent on matins.occurrence (job, scheduled_at desc);

-- One row per account of an occurrence: outbox entry, idempotency key, lease and report line in one.
-- No foreign key to occurrence: only the fan-out's page transaction inserts, under the occurrence's row lock.
create table matins.ledger (
    occurrence_id bigint not null,
    scheduled_at  timestamptz not null,
    account       text collate "C" not null check (account <> ''),
    -- 1, 2, 3… in the order of the fan-out: what the publisher's watermark counts.
    position      bigint not null,
    state         text not null default 'pending' check (state in ('pending', 'running', 'succeeded', 'failed', 'dead', 'cancelled')),
    generation    integer not null default 1,
    -- The fence. 0 until something other than the fan-out has touched the row, and never reset.
    epoch         bigint not null default 0,
    attempts      integer not null default 0,
    -- Starts that were committed and not yet settled: a worker that dies leaves it raised.
    starts        integer not null default 0,
    isolated      boolean not null default false,
    nothing_to_do boolean not null default false,
    -- Part of the idempotency key: '' unless an operator asked for a new key.
    key_salt      text not null default '',
    not_before    timestamptz,
    published_at  timestamptz,
    lease_until   timestamptz,
    started_at    timestamptz,
    finished_at   timestamptz,
    worker        text,
    error_class   text,
    error         text,
    result        jsonb,
    trace_context text,
    primary key (occurrence_id, account, scheduled_at),
    check ((state = 'running') = (lease_until is not null)),
    check ((state in ('succeeded', 'failed', 'dead', 'cancelled')) = (finished_at is not null)),
    check (state not in ('failed', 'dead') or error_class is not null),
    check (state <> 'succeeded' or error_class is null)
) partition by range (scheduled_at);
-- The open rows. Not `state in (…)`: a statement that asks for one account and a state would then be planned on this
-- index, which looks empty to the planner while a new month's partition has no statistics.
create index ledger_open on matins.ledger (occurrence_id, position) where finished_at is null;
create index ledger_unpublished on matins.ledger (occurrence_id, account)
    where state = 'pending' and epoch > 0 and published_at is null;
create index ledger_unsuccessful on matins.ledger (occurrence_id, state, account) where state in ('failed', 'dead', 'cancelled');

-- Makes the monthly partition that holds an instant. Attaching takes a weaker lock than `create … partition of`,
-- which would wait behind every running handler and make all others wait behind itself.
create function matins.ensure_ledger_partition(instant timestamptz) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    lower_bound timestamptz := date_trunc('month', instant at time zone 'UTC') at time zone 'UTC';
    upper_bound timestamptz := (date_trunc('month', instant at time zone 'UTC') + interval '1 month') at time zone 'UTC';
    partition_name text := 'ledger_' || to_char(instant at time zone 'UTC', 'YYYY_MM');
begin
    if to_regclass('matins.' || quote_ident(partition_name)) is not null then
        return;
    end if;
    perform pg_advisory_xact_lock(hashtextextended('matins.ensure_ledger_partition', 0));
    -- A query sees what the lock's last holder committed; to_regclass may still answer from this session's cache.
    if exists (select from pg_class where relnamespace = 'matins'::regnamespace and relname = partition_name) then
        return;
    end if;
    execute format('create table matins.%I (like matins.ledger including all)', partition_name);
    execute format('alter table matins.%I set (autovacuum_vacuum_scale_factor = 0.05, fillfactor = 90)', partition_name);
    execute format('alter table matins.ledger attach partition matins.%I for values from (%L) to (%L)',
                   partition_name, lower_bound, upper_bound);
end
$$;

-- What the publisher has sent for the first time: every row up to through_position.
create table matins.publication (
    occurrence_id    bigint not null,
    through_position bigint not null,
    published_at     timestamptz not null,
    primary key (occurrence_id, through_position)
);
