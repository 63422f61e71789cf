-- The classes of what did not succeed, each with its count, a few accounts in their order, and one message.
-- $1 occurrence id, $2 its scheduled_at, $3 examples per class.
select state, coalesce(error_class, 'untouched') as error_class, count(*) as accounts,
       (array_agg(account order by account))[1:$3::integer] as examples,
       coalesce(left((array_agg(error order by account))[1], 500), '') as message
  from matins.ledger
 where occurrence_id = $1 and scheduled_at = $2 and state in ('failed', 'dead', 'cancelled')
 group by 1, 2
 order by 3 desc, 2
 limit 100;
