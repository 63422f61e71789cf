-- Looks at some accounts of an occurrence that are not over, in the order in which they were read or against it, and gives
-- those of them that are in one of some states, and where the look ended, as `accounts_by_key` does.
-- $1 occurrence id, $2 its scheduled_at, $3 states, $4 behind this position, $5 before this one, $6 whether against the
-- order, $7 look at so many, $8 give so many at most.
with looked as materialized (
    (select l.account, l.position, l.state, l.attempts, l.generation, l.nothing_to_do, l.not_before, l.started_at,
            l.finished_at, l.error_class, case when l.state = any ($3::text[]) then l.error end as error
       from matins.ledger l
      where not $6::boolean and l.occurrence_id = $1 and l.scheduled_at = $2 and l.finished_at is null
        and l.position > $4::bigint and l.position < $5::bigint
      order by l.position
      limit $7)
    union all
    (select l.account, l.position, l.state, l.attempts, l.generation, l.nothing_to_do, l.not_before, l.started_at,
            l.finished_at, l.error_class, case when l.state = any ($3::text[]) then l.error end
       from matins.ledger l
      where $6::boolean and l.occurrence_id = $1 and l.scheduled_at = $2 and l.finished_at is null
        and l.position > $4::bigint and l.position < $5::bigint
      order by l.position desc
      limit $7))
, ended as (
    select count(*) as looked, case when $6::boolean then min(position) else max(position) end as stopped from looked)
select l.account, l.position, l.state, l.attempts, l.generation, l.nothing_to_do, l.not_before, l.started_at, l.finished_at,
       l.error_class, left(l.error, 1000) as error, length(l.error) as error_length, ended.looked, ended.stopped
  from ended
  left join looked l on l.state = any ($3::text[])
 order by case when $6::boolean then null else l.position end, l.position desc
 limit $8;
