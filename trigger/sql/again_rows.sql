-- Reads accounts that have to be published again: retries whose own message did not come, what a sweep or a re-run has
-- opened. Rows that a worker executes are locked and left alone: they will be settled, or found here again.
-- $1 occurrence id, $2 its scheduled_at, $3 grace after not_before, $4 at most, $5 now.
with clock as (select coalesce($5::timestamptz, clock_timestamp()) as now)
, found as (
    select l.account, l.position, l.generation, l.epoch, l.attempts, l.starts, l.isolated
      from matins.ledger l
     where l.occurrence_id = $1 and l.scheduled_at = $2
       and l.state = 'pending' and l.epoch > 0 and l.published_at is null
       and (l.not_before is null or l.not_before + $3::interval <= coalesce($5::timestamptz, clock_timestamp()))
     order by l.account
     limit $4
       for update skip locked)
select found.*, clock.now from found, clock order by position;
