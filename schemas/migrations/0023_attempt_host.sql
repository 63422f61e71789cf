-- Where somebody attempted who is no process of the fleet: a command has no row among the instances.
alter table matins.attempt add column host text;
