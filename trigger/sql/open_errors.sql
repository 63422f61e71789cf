-- The classes of what has failed so far while an occurrence runs, also of accounts that wait for another try ('pending').
-- $1 occurrence id, $2 its scheduled_at, $3 examples per class.
select l.state, coalesce(l.error_class, 'untouched') as error_class, count(*) as accounts,
       (array_agg(l.account order by l.account))[1:$3::integer] as examples,
       coalesce(left((array_agg(l.error order by l.account))[1], 500), '') as message
  from matins.ledger l
 where l.occurrence_id = $1 and l.scheduled_at = $2
   and (l.state in ('failed', 'dead', 'cancelled') or (l.finished_at is null and l.error_class is not null))
 group by 1, 2
 order by 3 desc, 2
 limit 100;
