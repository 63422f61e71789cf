-- Holds everything, once, and says so in the audit trail. Without a time through which what happened is known, the last
-- sign of life is taken that is no process's of these minutes.
-- $1 reason, $2 known through, $3 instance.
with held as (
    update matins.environment
       set held_since = clock_timestamp(), held_reason = $1,
           known_through = coalesce($2::timestamptz, (
               select max(i.seen_at) from matins.instance i where i.seen_at < clock_timestamp() - interval '1 minute'))
     where held_since is null
    returning known_through)
insert into matins.audit (kind, instance, reason, detail)
select 'hold', $3, $1, jsonb_build_object('known_through', known_through) from held;
