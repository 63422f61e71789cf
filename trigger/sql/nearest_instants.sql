-- Reads the planned instants next to one that isn't on the plan. $1 job, $2 instant.
(select scheduled_at from matins.occurrence
  where job = $1 and variant = '' and reason is distinct from 'superseded' and scheduled_at < $2 order by scheduled_at desc limit 1)
union all
(select scheduled_at from matins.occurrence
  where job = $1 and variant = '' and reason is distinct from 'superseded' and scheduled_at > $2 order by scheduled_at limit 1);
