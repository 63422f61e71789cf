-- Signed calls from outside that were answered with an occurrence: one that comes again is answered with the same.
-- Whoever remembers one forgets it once its time is outside of every tolerance.
create table matins.signed_call (
    caller        text not null,
    webhook_id    text not null check (length(webhook_id) <= 200),
    -- Of the job and the body: the same id with another content is another call, and is refused.
    digest        bytea not null,
    received_at   timestamptz not null default clock_timestamp(),
    occurrence_id bigint,
    primary key (caller, webhook_id)
);
create index signed_call_received on matins.signed_call (received_at);
