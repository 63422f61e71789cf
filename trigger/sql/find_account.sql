-- Finds the ledger rows of an account, through the occurrences of a range of ids, since no index leads from an account alone.
-- $1 account, $2 above this id, $3 up to this id.
select o.id, o.job, o.scheduled_at, o.variant, l.finished_at is null as is_open
  from matins.occurrence o
 cross join lateral (
       select one.finished_at
         from matins.ledger one
        where one.occurrence_id = o.id and one.scheduled_at = o.scheduled_at and one.account = $1
        limit 1) l
 where o.id > $2 and o.id <= $3
 order by o.id;
