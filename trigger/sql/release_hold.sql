-- Ends the hold; of two who try, one does. $1 server, $2 instance, $3 actor, $4 reason.
with held as (
    select held_since, held_reason, known_through from matins.environment where held_since is not null for update)
, released as (
    update matins.environment
       set held_since = null, held_reason = null, known_through = null, server = $1
      from held
    returning held.*)
insert into matins.audit (kind, instance, actor, actor_kind, reason, detail)
select 'release', $2, $3, 'operator', $4,
       jsonb_build_object('held_since', held_since, 'held_reason', held_reason, 'known_through', known_through)
  from released
returning at;
