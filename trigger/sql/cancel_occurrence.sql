-- Cancels: of several who try, one finds the occurrence not yet ending. One that waits is not run; of one that runs,
-- dispatch ends, and the ordinary close writes the state. $1 id, $2 actor, $3 reason, $4 instance.
with cancelled as (
    update matins.occurrence o
       set state = case when o.state = 'expected' then 'skipped' else o.state end,
           reason = case when o.state = 'expected' then 'cancelled by ' || $2::text || ': ' || $3::text else o.reason end,
           ending = case when o.state = 'expected' then null else 'cancel' end,
           ending_reason = case when o.state = 'expected' then null else 'by ' || $2::text || ': ' || $3::text end,
           epoch = o.epoch + 1
      from matins.occurrence former
     where o.id = $1 and former.id = o.id and o.state in ('expected', 'claimed', 'running') and o.ending is null
    returning o.id, o.job, o.state, o.generation, former.state as former, o.ending)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, actor, actor_kind, reason, detail)
    select 'cancel', job, id, $4, $2, 'operator', $3,
           jsonb_build_object('state', state, 'generation', generation, 'before', former,
                              'after', case when ending is null then state else 'ending' end)
      from cancelled)
select state from cancelled;
