-- Reads what happened to an occurrence, the latest first, with the hosts of who did it and of whom it was taken from.
-- $1 occurrence id, $2 kinds (null: all), $3 at most.
select a.id, a.at, a.kind, a.instance, a.version, a.actor, a.actor_kind, a.reason, a.detail, i.host,
       former.host as former_host
  from matins.audit a
  left join matins.instance i on i.id = a.instance
  left join matins.instance former on former.id = a.detail ->> 'from'
 where a.occurrence_id = $1 and ($2::text[] is null or a.kind = any ($2))
 order by a.id desc
 limit $3;
