-- Opens alerts: of all who see the same, one does; nobody is told yet. What has happened for good is not opened again once
-- it was acknowledged; what is over and comes back at once is told of later. Gives how many were opened.
-- $1 kinds, $2 subjects, $3 jobs, $4 occurrence ids, $5 told, $6 details, $7 whether it can be over, $8 instance,
-- $9 how long after one like it, $10 now.
with clock as (select coalesce($10::timestamptz, clock_timestamp()) as now)
, given as (
    select *
      from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::jsonb[], $7::boolean[])
           as given (kind, subject, job, occurrence_id, told, detail, lasts))
, opened as (
    insert into matins.alert (kind, subject, job, occurrence_id, told, detail, opened_at, opened_by, notices, next_notice_at)
    select given.kind, given.subject, given.job, given.occurrence_id, given.told, given.detail, clock.now, $8, 0,
           greatest(clock.now, case when given.lasts then (
               select max(former.closed_at) + $9::interval from matins.alert former
                where former.kind = given.kind and former.subject = given.subject and former.notices > 0) end)
      from given, clock
     where given.lasts
        or not exists (
           select from matins.alert former
            where former.kind = given.kind and former.subject = given.subject
              and former.closed_at is not null and former.acknowledged_at is not null
              and former.detail -> 'generation' is not distinct from given.detail -> 'generation')
    on conflict (kind, subject) where closed_at is null do nothing
    returning id, kind, subject, job, occurrence_id, told)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, reason, detail)
    select 'alert_opened', job, occurrence_id, $8, told, jsonb_build_object('alert', id, 'kind', kind, 'subject', subject)
      from opened order by id)
select id, kind, subject, job, told from opened order by id;
