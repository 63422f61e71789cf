-- Counts the accounts of an occurrence by state, for whoever watches it run, and the processes that could work on it.
-- $1 occurrence id.
select o.state, o.reason, o.ending, o.generation, o.accounts_read, o.sealed_at is not null as sealed,
       counted.waiting, counted.next_try_at, counted.pending, counted.running, counted.succeeded, counted.failed, counted.dead, counted.cancelled,
       (select count(*) from matins.instance i where i.kind = 'trigger' and i.stopped_at is null
           and i.seen_at > clock_timestamp() - interval '1 minute') as triggers,
       (select count(*) from matins.instance i where i.kind = 'worker' and i.stopped_at is null
           and i.seen_at > clock_timestamp() - interval '1 minute') as workers
  from matins.occurrence o
  cross join lateral (
       select count(*) filter (where l.state = 'pending') as pending,
              count(*) filter (where l.state = 'pending' and l.not_before > clock_timestamp()) as waiting,
              min(l.not_before) filter (where l.state = 'pending' and l.not_before > clock_timestamp()) as next_try_at,
              count(*) filter (where l.state = 'running') as running,
              count(*) filter (where l.state = 'succeeded') as succeeded,
              count(*) filter (where l.state = 'failed') as failed,
              count(*) filter (where l.state = 'dead') as dead,
              count(*) filter (where l.state = 'cancelled') as cancelled
         from matins.ledger l
        where l.occurrence_id = o.id and l.scheduled_at = o.scheduled_at) counted
 where o.id = $1;
