-- Ends the dispatch of occurrences that were not finished in time, where the job's definition of that time says so.
-- $1 job, $2 instance, $3 now.
with overdue as (
    update matins.occurrence o
       set ending = 'deadline', epoch = o.epoch + 1,
           ending_reason = 'not finished by ' || to_char(o.finish_by at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
      from matins.job_revision r
     where o.job = $1 and o.state in ('claimed', 'running') and o.ending is null
       and o.finish_by < coalesce($3::timestamptz, clock_timestamp())
       and r.job = o.job and r.revision = o.revision and r.definition ->> 'on_finish_within' = 'stop'
    returning o.id, o.job, o.ending_reason)
insert into matins.audit (kind, job, occurrence_id, instance, reason, detail)
select 'ending', job, id, $2, ending_reason, jsonb_build_object('ending', 'deadline')
  from overdue;
