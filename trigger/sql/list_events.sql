-- Lists what happened to an occurrence, in order. $1 occurrence id.
select at, kind, instance, actor, reason, detail
  from matins.audit
 where occurrence_id = $1
 order by id;
