-- Reads what a new definition has to be compared with: every later instant, and the last one that was due and not
-- superseded. Under the job row's lock. $1 job, $2 now.
(select scheduled_at, state, claimed_at is not null or state = 'coalesced' as claimed, reason is not distinct from 'superseded' as superseded
   from matins.occurrence
  where job = $1 and variant = '' and scheduled_at <= $2 and reason is distinct from 'superseded'
    and (origin = 'schedule' or claimed_at is not null)
  order by scheduled_at desc
  limit 1)
union all
select scheduled_at, state, false, reason is not distinct from 'superseded'
  from matins.occurrence
 where job = $1 and variant = '' and scheduled_at > $2 and origin = 'schedule';
