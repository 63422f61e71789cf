-- The run, as its sender names it, that has an occurrence of a job that runs elsewhere: what another run reports changes
-- nothing. Null where nobody named one, and for what runs here.
alter table matins.occurrence add column run_id text;
