-- Closes as failed what has started elsewhere and was not heard of in time, by the bounds of its own definition, whether or
-- not anybody declares its job: an occurrence stays open for nobody. Against an end that is reported at the same moment
-- one of the two finds the row still open. $1 instance, $2 report, $3 now.
with clock as (select coalesce($3::timestamptz, clock_timestamp()) as now)
, silent as (
    update matins.occurrence o
       set state = 'failed', reason = 'it started, and no end was reported within heard_within',
           total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0, lease_until = null,
           report = $2::jsonb || coalesce(o.report, '{}'), closed_at = clock.now
      from clock, matins.job_revision r
     where o.state = 'claimed' and o.sealed_at is null and o.ending is null
       and r.job = o.job and r.revision = o.revision and r.definition ->> 'coordination' = 'elsewhere'
       and o.finish_by < clock.now
       and o.due_at + make_interval(secs => (r.definition -> 'decisions' ->> 'catch_up_within')::double precision) < clock.now
    returning o.id, o.job, o.scheduled_at, o.generation, o.reason, o.opened_at, o.closed_at, o.run_id)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, reason, detail)
    select 'closed', job, id, $1, reason,
           jsonb_strip_nulls(jsonb_build_object('state', 'failed', 'generation', generation, 'run', run_id,
                                             'before', 'claimed', 'after', 'failed'))
      from silent)
select job, scheduled_at, generation, reason, opened_at, closed_at from silent order by id;
