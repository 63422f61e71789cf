-- The queues that a process counts on, so that none is retired under it; null for one of a release that doesn't say.
alter table matins.instance add column queues jsonb;
