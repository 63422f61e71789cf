-- The fingerprint of the definition that a process was started with, by job; null for one of a release that doesn't say.
alter table matins.instance add column definitions jsonb;
