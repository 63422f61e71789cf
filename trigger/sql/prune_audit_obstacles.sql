-- Names occurrences that were opened before an instant and are not over: what was done to them is still to be read.
-- $1 before, $2 at most.
select job, scheduled_at, variant, state
  from matins.occurrence
 where state in ('claimed', 'running') and opened_at < $1
 order by opened_at
 limit $2;
