-- Takes the lock that orders every decision about a job. It must be a transaction's first statement: what later
-- statements read is then what the lock's former holder has left. $1 name.
select name, revision, definition, fingerprint, planned_through, paused_at, paused_by, pause_reason, meanwhile, resumed_at,
       retired_at, retired_by, retire_reason
  from matins.job
 where name = $1
   for no key update;
