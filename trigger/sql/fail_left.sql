-- Ends what a worker that is gone has left of an occurrence of its own: nobody else runs that. A row that it still holds in
-- a transaction is left alone; the epoch fences what a frozen one still writes. $1 job, $2 silence, $3 now.
with clock as (select coalesce($3::timestamptz, clock_timestamp()) as now)
, left_behind as (
    select l.occurrence_id, l.scheduled_at, l.account, o.opened_at
      from clock
      join matins.occurrence o on o.job = $1 and o.variant like '@%' and o.state = 'running'
      left join matins.instance i on i.id = o.claimed_by
      join matins.ledger l on l.occurrence_id = o.id and l.scheduled_at = o.scheduled_at and l.state = 'pending'
     where i.id is null or i.stopped_at is not null or i.seen_at < clock.now - $2::interval
     order by l.occurrence_id
       for update of l skip locked)
update matins.ledger l
   set state = 'failed', epoch = l.epoch + 1, attempts = l.attempts + 1, starts = 0, started_at = left_behind.opened_at,
       finished_at = clock.now, worker = l.account, error_class = 'worker_lost',
       error = 'its worker ended, or fell silent, before it was done'
  from clock, left_behind
 where l.occurrence_id = left_behind.occurrence_id and l.scheduled_at = left_behind.scheduled_at
   and l.account = left_behind.account
returning l.occurrence_id;
