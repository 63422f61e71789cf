-- Records that somebody asked for an occurrence that was claimed already, waits for the one before, or is over; gives its id
-- and state, and whether somebody had asked for it before. Under the job row's lock where that counts.
-- $1 job, $2 scheduled_at, $3 variant, $4 instance, $5 actor, $6 reason, $7 detail,
-- $8 actor kind.
with called as (
    select id, state from matins.occurrence where job = $1 and scheduled_at = $2 and variant = $3)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, actor, actor_kind, reason, detail)
    select 'called', $1, called.id, $4, $5, $8, $6, $7::jsonb || jsonb_build_object('found', called.state) from called)
select id, state, exists (
       select from matins.audit a where a.occurrence_id = called.id and a.kind = 'called') as asked_before
  from called;
