-- Retention: what was due before this instant has no ledger any more, and is never claimed or run again.
alter table matins.environment add column retained_from timestamptz;
