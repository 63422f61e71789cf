-- Closes alerts, once whoever sees first that they are over. $1 ids, $2 reasons, $3 instance, $4 now.
with given as (
    select * from unnest($1::bigint[], $2::text[]) as given (id, reason))
, closed as (
    update matins.alert a
       set closed_at = greatest(a.opened_at, coalesce($4::timestamptz, clock_timestamp())), close_reason = given.reason
      from given
     where a.id = given.id and a.closed_at is null
    returning a.*)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, reason, detail)
    select 'alert_closed', job, occurrence_id, $3, close_reason, jsonb_build_object('alert', id, 'kind', kind, 'subject', subject)
      from closed order by id)
select id, kind, subject, job, told, detail, opened_at, notices, closed_at, close_reason, closed_at as at
  from closed order by id;
