-- Records from when on ledgers are retained, which only ever moves forward, and who decided it; behind the locks of all
-- jobs. $1 instant, $2 instance, $3 actor, $4 reason, $5 detail.
with moved as (
    update matins.environment e
       set retained_from = greatest(e.retained_from, $1::timestamptz)
      from (select retained_from as before from matins.environment for update) former
    returning e.retained_from, former.before)
, audited as (
    insert into matins.audit (kind, instance, actor, actor_kind, reason, detail)
    select 'prune', $2, $3, 'operator', $4,
           $5::jsonb || jsonb_build_object('before', before, 'after', retained_from, 'retained_from', retained_from)
      from moved)
select retained_from from moved;
