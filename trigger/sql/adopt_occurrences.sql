-- Moves what stays expected to the new revision, so that it can be claimed, and gives it the new jitter; under the
-- job row's lock. $1 job, $2 revision, $3 instants of the new definition, $4 when each is due.
update matins.occurrence o
   set revision = $2,
       due_at = coalesce((select given.due_at from unnest($3::timestamptz[], $4::timestamptz[]) as given (instant, due_at)
                           where given.instant = o.scheduled_at), o.due_at)
 where o.job = $1 and o.state = 'expected';
