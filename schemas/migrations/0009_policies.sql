-- What a due instant was made to wait for: it is late only by the time since that is over.
alter table matins.occurrence add column waits_for bigint references matins.occurrence (id);
