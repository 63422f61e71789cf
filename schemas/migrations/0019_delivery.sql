-- A channel, as far as a process has declared one of the name: up to when what there is to tell was given to it, and
-- when something that one process does for all was last done.
create table matins.channel (
    name           text primary key check (name <> ''),
    spread_through timestamptz not null,
    turn_at        timestamptz
);

-- One message on its way through one channel. In a thread, one follows the other: an end is told after its beginning.
create table matins.delivery (
    id              bigint generated always as identity primary key,
    channel         text not null references matins.channel (name),
    thread          text not null,
    place           bigint not null,
    notification_id bigint references matins.notification (id),
    -- Of a ping about a job: what it tells of which run.
    occurrence_id   bigint references matins.occurrence (id),
    generation      integer,
    event           text not null check (event in ('opened', 'repeated', 'closed', 'test', 'start', 'success', 'fail')),
    state           text not null default 'waiting' check (state in ('waiting', 'delivered', 'given_up', 'superseded')),
    created_at      timestamptz not null,
    not_before      timestamptz not null,
    attempts        integer not null default 0,
    deliverer       text,
    leased_until    timestamptz,
    ended_at        timestamptz,
    error           text,
    unique (channel, notification_id),
    unique (channel, occurrence_id, generation, event),
    check ((notification_id is null) <> (occurrence_id is null)),
    check ((occurrence_id is null) = (generation is null)),
    check ((state = 'waiting') = (ended_at is null))
);
create index delivery_waiting on matins.delivery (channel, not_before) where state = 'waiting';
create index delivery_thread on matins.delivery (channel, thread, place) where state = 'waiting';
create index delivery_given_up on matins.delivery (channel, ended_at) where state = 'given_up';
create index notification_created on matins.notification (created_at);
create index notification_alert on matins.notification (alert_id);
