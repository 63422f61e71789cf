-- Tells whether a worker's own row still waits for it: a sweep, a cancel or a deadline may have ended it.
-- $1 occurrence id, $2 its scheduled_at.
select exists (
    select from matins.ledger l
      join matins.occurrence o on o.id = l.occurrence_id and o.ending is null
     where l.occurrence_id = $1 and l.scheduled_at = $2 and l.state = 'pending');
