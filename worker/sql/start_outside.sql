-- Commits the start of an outside call: of several copies one gets the row, and its epoch is the fence of the settle.
-- A row that has used up its starts is given back unchanged: it kills its workers. Nothing is
-- started while everything is held.
-- $1 occurrence id, $2 its scheduled_at, $3 account, $4 generation, $5 now, $6 starts that are allowed, $7 lease,
-- $8 worker, $9 published at.
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
   set state = case when startable.allowed then 'running' else l.state end,
       starts = l.starts + case when startable.allowed then 1 else 0 end,
       epoch = l.epoch + 1,
       lease_until = case when startable.allowed then coalesce($5::timestamptz, clock_timestamp()) + $7::interval end,
       started_at = coalesce($5::timestamptz, clock_timestamp()),
       published_at = coalesce(l.published_at, $9),
       worker = $8
  from startable
 where l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = $3
returning l.epoch, l.attempts, l.starts, l.key_salt, l.trace_context, l.started_at, startable.allowed;
