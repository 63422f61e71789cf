-- Opens an occurrence again in its next generation: of several operators, one finds the generation that all have read.
-- One that was never sealed is claimed again with its lease over, so that any trigger goes on at the cursor. Every row that
-- is opened has an epoch above 0, so the first publish has nothing left to do, and its watermark says so. What is older than
-- what is retained has no rows to open. Nothing
-- is opened while everything is held.
-- $1 id, $2 generation, $3 finish within, $4 report with the earlier generations, $5 now.
with clock as (select coalesce($5::timestamptz, clock_timestamp()) as now)
, opened as (
    update matins.occurrence o
       set state = case when o.sealed_at is null then 'claimed' else 'running' end,
           generation = o.generation + 1, epoch = o.epoch + 1, report = $4,
           reason = null, ending = null, ending_reason = null, fan_out_attempts = 0, fan_out_error = null,
           opened_at = clock.now, finish_by = clock.now + $3::interval, closed_at = null,
           lease_until = case when o.sealed_at is null then clock.now end,
           total = null, succeeded = null, failed = null, dead = null, cancelled = null
      from clock
     where o.id = $1 and o.generation = $2 and o.state in ('partial', 'failed', 'cancelled')
       and not exists (select 1 from matins.environment e where e.held_since is not null)
       and o.scheduled_at >= coalesce((select e.retained_from from matins.environment e), o.scheduled_at)
    returning o.id, o.generation, o.state, o.accounts_read)
, watermark as (
    insert into matins.publication (occurrence_id, through_position, published_at)
    select opened.id, opened.accounts_read, clock.now from opened, clock where opened.accounts_read > 0
    on conflict do nothing)
select generation, state from opened;
