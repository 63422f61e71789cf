-- A hold: after a restore nothing is claimed, published or started before a person has read what may happen twice.
alter table matins.environment
    add column held_since    timestamptz,
    add column held_reason   text,
    -- What happened later than this is not in the database, as far as is known.
    add column known_through timestamptz,
    -- Which server and timeline the database was last seen on by somebody who knows that nothing was lost.
    add column server        text,
    add constraint held_with_reason check ((held_since is null) = (held_reason is null));

-- Counts a process's signs of life, so that it notices when the database has forgotten some.
alter table matins.instance add column beats bigint not null default 0;
