-- Counts the accounts of an occurrence that has no open row. $1 occurrence id, $2 its scheduled_at.
select count(*) filter (where state = 'succeeded') as succeeded,
       count(*) filter (where state = 'failed') as failed,
       count(*) filter (where state = 'dead') as dead,
       count(*) filter (where state = 'cancelled') as cancelled,
       count(*) filter (where state = 'succeeded' and nothing_to_do) as nothing_to_do,
       coalesce(sum(greatest(attempts - 1, 0)), 0)::bigint as retries,
       min(started_at) as first_account_at,
       max(finished_at) filter (where started_at is not null) as last_account_at,
       percentile_cont(array[0.5, 0.95, 0.99, 1]) within group (order by extract(epoch from finished_at - started_at)::double precision)
           filter (where started_at is not null) as durations
  from matins.ledger
 where occurrence_id = $1 and scheduled_at = $2;
