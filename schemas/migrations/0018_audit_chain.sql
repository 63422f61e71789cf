-- The audit trail, complete and chained. Rows are appended freely and commit in any order; a sealer chains them in order of
-- (xid, id), once every transaction that is older than them is over. Rows from before have no transaction: they come first.
alter table matins.audit
    add column xid        xid8 not null default '0',
    -- The release of the process that wrote it; `actor` is who ordered it: a person, or a caller from outside. Without an
    -- actor the instance acted by itself.
    add column version    text,
    add column actor_kind text,
    add constraint audit_actor_kind check (
        actor_kind is null or (actor is not null and actor_kind in ('operator', 'caller')));
alter table matins.audit alter column xid set default pg_current_xact_id();
create index audit_xid on matins.audit (xid, id);
create index audit_at on matins.audit (at);

-- Says of each row which release wrote it, also where that release is one that doesn't say: a service has recorded its
-- own, and a command bears it in its connection's name.
create function matins.complete_audit() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if new.version is null then
        new.version := coalesce(
            (select i.version from matins.instance i where i.id = new.instance),
            substring(current_setting('application_name') from '^matins command ([^ ]+)$'));
    end if;
    return new;
end
$$;
revoke all on function matins.complete_audit() from public;
-- A transaction has its number before it draws an id, so that of two that were drawn the smaller one's is known to have begun.
create function matins.begin_audit() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_current_xact_id();
    return null;
end
$$;
revoke all on function matins.begin_audit() from public;
create trigger begin_audit before insert on matins.audit for each statement execute function matins.begin_audit();
create trigger complete_audit before insert on matins.audit for each row execute function matins.complete_audit();

-- One row for each row of the audit trail, in the order in which they were sealed. No foreign key: a row that is taken
-- away must be missed. A row whose salt was taken away is redacted: its former content can be guessed by nobody.
create table matins.audit_chain (
    position bigint primary key check (position > 0),
    audit_id bigint not null unique,
    digest   bytea not null check (length(digest) = 32),
    salt     bytea check (length(salt) = 16),
    hash     bytea not null check (length(hash) = 32)
);

-- One row for each batch: of two sealers, one writes the next number. Every row of the trail up to (through_xid, through_id)
-- is sealed; whatever of it comes later was put there. An era is the time on one server, which counts its transactions; its
-- first look is over once all that it has found is sealed.
create table matins.audit_seal (
    number       bigint primary key check (number > 0),
    era          integer not null,
    first_look   boolean not null,
    server       text,
    position     bigint not null,
    hash         bytea not null check (length(hash) = 32),
    rows         integer not null,
    through_xid  xid8 not null,
    through_id   bigint not null,
    -- The largest id that is sealed, and a transaction that began after it was drawn: none that began later can have drawn
    -- a smaller one.
    highest_id   bigint not null,
    begun_after  xid8 not null default pg_current_xact_id(),
    sealed_by    text not null,
    sealed_at    timestamptz not null default clock_timestamp()
);
create index audit_seal_highest on matins.audit_seal (highest_id, number);
