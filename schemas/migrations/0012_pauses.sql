-- A job's standing: who has paused or retired it and why, what becomes of what falls due during a pause, and since when
-- it counts again.
alter table matins.job
    add column paused_by     text,
    add column pause_reason  text,
    add column meanwhile     text not null default 'skip' check (meanwhile in ('skip', 'hold')),
    add column resumed_at    timestamptz,
    add column retired_by    text,
    add column retire_reason text;
