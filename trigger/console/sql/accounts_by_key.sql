-- Looks at some accounts of an occurrence in key order, or against it, and gives those of them that are in one of some
-- states. A row without an account, or the rows themselves, say where the look ended and how many it saw: where the states
-- that are asked for are rare, it is for the caller to go on from there.
-- $1 occurrence id, $2 its scheduled_at, $3 states, $4 from this account, $5 behind this one, $6 before this one, $7 whether
-- against the order, $8 look at so many, $9 give so many at most.
with looked as materialized (
    (select l.account, l.position, l.state, l.attempts, l.generation, l.nothing_to_do, l.not_before, l.started_at,
            l.finished_at, l.error_class, case when l.state = any ($3::text[]) then l.error end as error
       from matins.ledger l
      where not $7::boolean and l.occurrence_id = $1 and l.scheduled_at = $2
        and l.account >= $4::text and l.account > $5::text and l.account < $6::text
      order by l.account
      limit $8)
    union all
    (select l.account, l.position, l.state, l.attempts, l.generation, l.nothing_to_do, l.not_before, l.started_at,
            l.finished_at, l.error_class, case when l.state = any ($3::text[]) then l.error end
       from matins.ledger l
      where $7::boolean and l.occurrence_id = $1 and l.scheduled_at = $2
        and l.account >= $4::text and l.account > $5::text and l.account < $6::text
      order by l.account desc
      limit $8))
, ended as (
    select count(*) as looked, case when $7::boolean then min(account) else max(account) end as stopped from looked)
select l.account, l.position, l.state, l.attempts, l.generation, l.nothing_to_do, l.not_before, l.started_at, l.finished_at,
       l.error_class, left(l.error, 1000) as error, length(l.error) as error_length, ended.looked, ended.stopped
  from ended
  left join looked l on l.state = any ($3::text[])
 order by case when $7::boolean then null else l.account end, l.account desc
 limit $9;
