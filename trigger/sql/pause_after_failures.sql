-- Pauses a job whose last occurrences have all failed since it was last resumed, and says so in the audit trail; under the
-- job row's lock, so that no claim comes between. One that runs again stands among them, and has not failed. Gives
-- the reason if it pauses now.
-- $1 job, $2 how many failures, $3 instance, $4 now.
with latest as materialized (
    select o.state, o.closed_at
      from matins.occurrence o
     where o.job = $1 and o.variant = '' and (o.closed_at is not null or o.generation > 1)
     order by o.scheduled_at desc
     limit $2::integer)
, paused as (
    update matins.job j
       set paused_at = coalesce($4::timestamptz, clock_timestamp()), paused_by = null, meanwhile = 'skip',
           pause_reason = 'paused after ' || $2::integer || ' failed in a row'
     where j.name = $1 and j.paused_at is null
       and $2::integer = (select count(*) from latest
                           where state = 'failed' and closed_at > coalesce(j.resumed_at, '-infinity'))
    returning j.name, j.paused_at, j.pause_reason, j.meanwhile)
, audited as (
    insert into matins.audit (kind, job, instance, reason, detail)
    select 'pause', name, $3, pause_reason,
           jsonb_build_object('before', '{}'::jsonb, 'after', jsonb_build_object('paused_at', paused_at, 'meanwhile', meanwhile))
      from paused)
select pause_reason from paused;
