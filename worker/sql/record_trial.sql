-- Records that a handler's second run has changed nothing, once for its code. $1 job, $2 mark of the code, $3 actor,
-- $4 version.
insert into matins.trial (job, mark, actor, version) values ($1, $2, $3, $4) on conflict (job, mark) do nothing;
