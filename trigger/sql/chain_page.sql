-- Reads a page of the audit trail's chain in order, each link with the row that it stands for; a row that is gone is null.
-- $1 behind this position, $2 at most.
select c.position, c.audit_id, c.digest, c.salt, c.hash,
       a.id, a.at, a.xid::text as xid, a.kind, a.job, a.occurrence_id, a.instance, a.version, a.actor, a.actor_kind, a.reason,
       a.detail::text as detail
  from matins.audit_chain c
  left join matins.audit a on a.id = c.audit_id
 where c.position > $1
 order by c.position
 limit $2;
