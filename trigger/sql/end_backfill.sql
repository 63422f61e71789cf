-- Ends a job's backfill, once: it is done, or somebody has cancelled it, and then what still waits for it is skipped. Under
-- the job row's lock. Gives its id. $1 job, $2 state, $3 actor (null: nobody), $4 reason, $5 instance, $6 now.
with ended as (
    update matins.backfill b
       set state = $2, ended_by = $3, end_reason = $4, ended_at = coalesce($6::timestamptz, clock_timestamp())
     where b.job = $1 and b.state = 'active'
    returning b.id, b.job)
, skipped as (
    update matins.occurrence o
       set state = 'skipped', reason = 'backfill cancelled'
      from ended
      join matins.backfill_occurrence i on i.backfill_id = ended.id
     where o.id = i.occurrence_id and o.state = 'expected' and o.origin = 'backfill'
    returning o.id, o.job)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, actor, actor_kind, reason, detail)
    select 'skipped', skipped.job, skipped.id, $5::text, $3::text, case when $3::text is not null then 'operator' end,
           'backfill cancelled', jsonb_build_object('backfill', ended.id, 'because_of', $4::text, 'before', 'expected',
                                                    'after', 'skipped')
      from skipped, ended
    union all
    select 'backfill_' || $2::text, ended.job, null, $5::text, $3::text,
           case when $3::text is not null then 'operator' end, $4::text,
           jsonb_build_object('backfill', ended.id, 'before', 'active', 'after', $2::text,
                              'skipped', (select count(*) from skipped))
      from ended)
select id from ended;
