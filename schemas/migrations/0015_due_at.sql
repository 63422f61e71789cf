-- When an occurrence may be claimed: its scheduled instant, which stays its identity, or as much later as the job's jitter
-- says. A release that knows of no jitter leaves the column out, and is given the scheduled instant.
alter table matins.occurrence add column due_at timestamptz;
update matins.occurrence set due_at = scheduled_at;
alter table matins.occurrence
    alter column due_at set not null,
    add constraint due_when_scheduled_or_later check (due_at >= scheduled_at);

create function matins.due_when_scheduled() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    new.due_at := new.scheduled_at;
    return new;
end
$$;
revoke all on function matins.due_when_scheduled() from public;
create trigger due_when_scheduled before insert on matins.occurrence
    for each row when (new.due_at is null) execute function matins.due_when_scheduled();
