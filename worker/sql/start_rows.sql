-- Takes accounts for one transaction: of all copies of a message, one gets the row, the others skip what is locked.
-- Rows are locked in the order of their key. No row is given of an occurrence whose dispatch is over, and none
-- while everything is held.
-- Each row is sought by its whole key, also while a new month's partition has no statistics: `given` looks like one row
-- to the planner.
-- $1 occurrence id, $2 its scheduled_at, $3 accounts, $4 generation, $5 now.
with given as materialized (
    select $1::bigint as occurrence_id, one.account
      from unnest($3::text[]) with ordinality as one (account, place)
     where one.place between 1 and 10000)
select l.account, l.epoch, l.attempts, l.starts, l.key_salt, l.trace_context, clock_timestamp() as started_at
  from given
  join matins.ledger l
    on l.occurrence_id = given.occurrence_id and l.account = given.account and l.scheduled_at = $2
   and l.state = 'pending' and l.generation = $4
   and (l.not_before is null or l.not_before <= coalesce($5::timestamptz, clock_timestamp()))
 where not exists (select 1 from matins.occurrence o where o.id = $1 and o.ending is not null)
   and not exists (select 1 from matins.environment e where e.held_since is not null)
 order by l.account
   for update of l skip locked;
