-- Commits a start of its own for an account whose earlier start may have ended its worker, and counts it.
-- Of several copies one gets the row. A row that has used up its starts is given back uncounted: it kills its workers. Nothing is
-- started while everything is held.
-- $1 occurrence id, $2 its scheduled_at, $3 account, $4 generation, $5 now, $6 starts that are allowed.
with startable as (
    select l.account, l.starts < $6::integer as allowed
      from matins.ledger l
     where l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = $3
       and l.state = 'pending' and l.generation = $4
       and (l.not_before is null or l.not_before <= coalesce($5::timestamptz, clock_timestamp()))
       and not exists (select 1 from matins.occurrence o where o.id = $1 and o.ending is not null)
       and not exists (select 1 from matins.environment e where e.held_since is not null)
       for update of l skip locked)
update matins.ledger l
   set starts = l.starts + case when startable.allowed then 1 else 0 end,
       epoch = l.epoch + 1,
       isolated = true,
       published_at = coalesce(l.published_at, $5::timestamptz, clock_timestamp())
  from startable
 where l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = $3
returning l.starts, startable.allowed;
