-- Ends the dispatch of occurrences, so that a later one of their job can start once they are over. Under the job row's
-- lock: nothing is claimed between the look for them and this. One that has closed, or ends already, is left alone.
-- $1 ids, $2 reason, $3 instance, $4 actor (null: the schedule), $5 what is to start,
-- $6 actor kind.
with cancelled as (
    update matins.occurrence o
       set ending = 'cancel', ending_reason = $2, epoch = o.epoch + 1
     where o.id = any ($1::bigint[]) and o.state in ('claimed', 'running') and o.ending is null
    returning o.id, o.job, o.scheduled_at, o.state, o.generation)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, actor, actor_kind, reason, detail)
    select 'cancel', job, id, $3, $4, $6, $2,
           jsonb_build_object('state', state, 'generation', generation, 'because_of', $5::text, 'after', 'ending')
      from cancelled)
select id, scheduled_at from cancelled order by id;
