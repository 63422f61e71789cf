-- Finds the occurrence that a check-in without an instant means: of a named run, the one that this run has; for an end, the
-- one that was started last; else the latest that is due, or the next one for a sender whose clock is a little ahead: at
-- its start always, at its end if nothing is awaited of the latest. Under the job row's lock.
-- $1 job, $2 run, $3 whether it starts, $4 how far ahead a clock may be, $5 how far back to look for a run, $6 now.
with clock as (select coalesce($6::timestamptz, clock_timestamp()) as now)
, known as (
    select o.scheduled_at from clock, matins.occurrence o
     where o.job = $1 and o.variant = '' and o.run_id = $2 and o.scheduled_at > clock.now - $5::interval
     order by o.scheduled_at desc limit 1)
, started as (
    select o.scheduled_at from matins.occurrence o
     where o.job = $1 and o.variant = '' and o.state = 'claimed' and $2::text is null and not $3::boolean
     order by o.opened_at desc, o.id desc limit 1)
, latest as (
    select o.scheduled_at, o.state in ('expected', 'claimed') as is_awaited from clock, matins.occurrence o
     where o.job = $1 and o.variant = '' and o.origin = 'schedule' and o.due_at <= clock.now
       and coalesce(o.reason, '') not in ('superseded', 'calendar')
     order by o.scheduled_at desc limit 1)
, next as (
    select o.scheduled_at from clock, matins.occurrence o
     where o.job = $1 and o.variant = '' and o.state = 'expected' and o.origin = 'schedule'
       and o.due_at > clock.now and o.due_at <= clock.now + $4::interval
       and ($3::boolean or not exists (select from latest where is_awaited))
     order by o.scheduled_at limit 1)
select coalesce((select scheduled_at from known), (select scheduled_at from started), (select scheduled_at from next),
                (select scheduled_at from latest));
