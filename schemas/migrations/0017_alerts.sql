-- What should have happened and did not, and what is out of the ordinary, as the watch found it.
create table matins.alert (
    id                 bigint generated always as identity primary key,
    kind               text not null check (kind ~ '^[a-z][a-z_]{0,40}$'),
    -- An occurrence's name, a job's, or an instance's id.
    subject            text not null check (subject <> ''),
    job                text,
    occurrence_id      bigint references matins.occurrence (id),
    -- What was expected and what is known, in a sentence; the same for machines.
    told               text not null,
    detail             jsonb not null default '{}',
    opened_at          timestamptz not null default clock_timestamp(),
    opened_by          text not null,
    -- How often it was told, and when it is told again; null when it is not.
    notices            integer not null default 1 check (notices > 0),
    next_notice_at     timestamptz,
    acknowledged_at    timestamptz,
    acknowledged_by    text,
    acknowledge_reason text,
    silenced_until     timestamptz,
    silenced_by        text,
    silence_reason     text,
    closed_at          timestamptz,
    close_reason       text,
    check ((acknowledged_at is null) = (acknowledged_by is null) and (acknowledged_at is null) = (acknowledge_reason is null)),
    check ((silenced_until is null) = (silenced_by is null) and (silenced_until is null) = (silence_reason is null)),
    check ((closed_at is null) = (close_reason is null))
);
-- Of all who see the same, one opens it.
create unique index alert_open on matins.alert (kind, subject) where closed_at is null;
create index alert_opened on matins.alert (opened_at);

-- Planned work: what is out of order meanwhile is recorded, and told to nobody before it is over. Without a job: all jobs.
create table matins.maintenance (
    id         bigint generated always as identity primary key,
    job        text references matins.job (name),
    since      timestamptz not null,
    until      timestamptz not null,
    actor      text not null,
    reason     text not null,
    created_at timestamptz not null default clock_timestamp(),
    check (since < until)
);
create index maintenance_until on matins.maintenance (until);

-- The outbox: written in the transaction that opens, repeats or closes an alert, and delivered by whoever has channels.
create table matins.notification (
    id         bigint generated always as identity primary key,
    alert_id   bigint references matins.alert (id),
    event      text not null check (event in ('opened', 'repeated', 'closed', 'test')),
    body       jsonb not null,
    created_at timestamptz not null default clock_timestamp()
);
