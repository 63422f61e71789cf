-- Reads, for every job or one, its last occurrence that was decided by running or by nobody, its next one, and what is late. An
-- ad-hoc one is never a job's last, and what a backfill lets wait is not late. $1 job (null: all).
select j.name, j.revision, j.definition, j.paused_at, j.paused_by, j.pause_reason, j.meanwhile, j.resumed_at, j.retired_at,
       j.retired_by, j.retire_reason, clock_timestamp() as now,
       last.scheduled_at as last_scheduled_at, last.variant as last_variant, last.state as last_state,
       last.reason as last_reason, last.generation as last_generation, last.opened_at as last_opened_at,
       last.closed_at as last_closed_at, last.total as last_total, last.succeeded as last_succeeded,
       last.failed as last_failed, last.dead as last_dead, last.cancelled as last_cancelled,
       next.scheduled_at as next_scheduled_at, late.scheduled_at as late_scheduled_at
  from matins.job j
  left join lateral (
       select o.* from matins.occurrence o
        where o.job = j.name and o.origin <> 'ad_hoc'
          and o.state in ('succeeded', 'partial', 'failed', 'cancelled', 'missed')
        order by o.scheduled_at desc
        limit 1) last on true
  left join lateral (
       select o.scheduled_at from matins.occurrence o
        where o.job = j.name and o.state = 'expected' and o.due_at > clock_timestamp()
        order by o.scheduled_at
        limit 1) next on true
  left join lateral (
       select o.scheduled_at from matins.occurrence o
        where o.job = j.name and o.state = 'expected' and o.origin = 'schedule'
          and o.due_at + make_interval(secs => (j.definition -> 'decisions' ->> 'start_within')::double precision)
              < clock_timestamp()
          -- One that was made to wait is nobody's fault.
          and not exists (select from matins.occurrence former where former.id = o.waits_for and former.closed_at is null)
        order by o.scheduled_at
        limit 1) late on true
 where $1::text is null or j.name = $1
 order by j.name;
