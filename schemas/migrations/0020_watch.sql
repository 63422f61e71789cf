-- Who has looked last, of all who may: so that a fleet looks once where each of its processes could. And when everything
-- was last found held: what is due is late from then.
create table matins.watch (
    singleton boolean primary key default true check (singleton),
    looked_at timestamptz,
    looked_by text,
    held_at   timestamptz
);
insert into matins.watch default values;

-- How far a job's schedule was compared with its rows, by which revision, and when the next comparison is due.
create table matins.comparison (
    job              text primary key references matins.job (name),
    revision         integer not null,
    compared_through timestamptz not null,
    next_at          timestamptz not null
);
create index comparison_next on matins.comparison (next_at);

-- When an active occurrence last got on: what was seen of it then, and when it had changed, or a worker had settled of it.
create table matins.progress (
    occurrence_id bigint primary key,
    seen          text not null default '',
    moved_at      timestamptz not null
);

-- An alert that nobody has been told of yet: it was opened during planned work, or soon after one like it was over.
alter table matins.alert drop constraint alert_notices_check;
alter table matins.alert add check (notices >= 0);
create index alert_subject on matins.alert (kind, subject);

-- By how many seconds a process's clock was ahead of the database's at its last sign of life.
alter table matins.instance add column skew double precision;

-- What ended badly, by when; what was missed has no other time than that at which it was due.
create index occurrence_ended_badly on matins.occurrence (closed_at) where state in ('partial', 'failed');
create index occurrence_missed on matins.occurrence (scheduled_at) where state = 'missed';
