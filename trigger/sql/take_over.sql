-- Takes over one occurrence whose claimer has gone silent: of several who try, one gets the row, at the next epoch, so
-- that whatever the former one still writes changes nothing. $1 jobs, $2 instance, $3 lease, $4 now.
with clock as (select coalesce($4::timestamptz, clock_timestamp()) as now)
, taken as (
    update matins.occurrence o
       set epoch = o.epoch + 1, claimed_by = $2, lease_until = clock.now + $3::interval
      from clock, (
          select silent.id, silent.claimed_by
            from clock, matins.occurrence silent
           where silent.job = any ($1::text[]) and silent.state = 'claimed' and silent.ending is null
             and silent.lease_until < clock.now
           order by silent.id
           limit 1
             for update of silent skip locked) former
     where o.id = former.id
    returning o.*, former.claimed_by as former)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, detail)
    select 'takeover', job, id, $2, jsonb_build_object('epoch', epoch, 'from', former, 'accounts_read', accounts_read)
      from taken)
select id, job, scheduled_at, variant, window_since, window_until, generation, epoch, cursor, accounts_read,
       fan_out_attempts, claimed_at, trace_context
  from taken;
