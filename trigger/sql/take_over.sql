-- Takes over one occurrence whose claimer has gone silent: of several who try, one gets the row, at the next epoch, so
-- that whatever the former one still writes changes nothing. A claimer of whom nothing was heard since it took the row
-- counts as a failed attempt, since the source may be what ends each of them; after the last one dispatch ends instead.
-- Nothing is taken over while everything is held.
-- $1 jobs, $2 instance, $3 lease, $4 attempts allowed, $5 now.
with clock as (select coalesce($5::timestamptz, clock_timestamp()) as now)
, former as materialized (
    select silent.id, silent.claimed_by,
           silent.fan_out_attempts + coalesce((
               select (a.kind in ('claim', 'takeover') and a.actor is null)::integer
                 from matins.audit a
                where a.occurrence_id = silent.id
                order by a.id desc
                limit 1), 1) as attempts
      from clock, matins.occurrence silent
     where silent.job = any ($1::text[]) and silent.state = 'claimed' and silent.ending is null
       and not exists (select 1 from matins.environment e where e.held_since is not null)
       and silent.lease_until < clock.now
     order by silent.id
     limit 1
       for no key update of silent skip locked)
, given_up as (
    select former.*,
           case when former.attempts >= $4::integer then
                former.attempts || ' attempts without a page, the last of them by a trigger that fell silent' end as reason
      from former)
, taken as (
    update matins.occurrence o
       set epoch = o.epoch + 1, claimed_by = $2, lease_until = clock.now + $3::interval,
           fan_out_attempts = former.attempts, fan_out_error = coalesce(former.reason, o.fan_out_error),
           ending = case when former.reason is not null then 'fan_out' end, ending_reason = former.reason
      from clock, given_up as former
     where o.id = former.id
    returning o.*, former.claimed_by as former)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, reason, detail)
    select case when ending is null then 'takeover' else 'fan_out_failed' end, job, id, $2, ending_reason,
           jsonb_build_object('epoch', epoch, 'from', former, 'accounts_read', accounts_read, 'attempts', fan_out_attempts)
      from taken)
select id, job, scheduled_at, due_at, variant, window_since, window_until, generation, epoch, cursor, accounts_read,
       fan_out_attempts, claimed_at, trace_context, ending_reason
  from taken;
