-- Reads accounts that were never published, behind the watermark. $1 occurrence id, $2 its scheduled_at, $3 watermark,
-- $4 at most, $5 now.
with clock as (select coalesce($5::timestamptz, clock_timestamp()) as now)
select l.account, l.position, l.generation, l.epoch, l.attempts, l.starts, l.isolated, clock.now
  from clock, matins.ledger l
 where l.occurrence_id = $1 and l.scheduled_at = $2 and l.position > $3
   and l.state = 'pending' and l.finished_at is null and l.epoch = 0
 order by l.position
 limit $4;
