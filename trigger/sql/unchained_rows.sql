-- Reads the rows of the audit trail that are in no link of its chain, of a range of ids: those that wait for the sealer, and
-- those that were put behind its back. $1 above this id, $2 up to this id.
select a.id, a.at, a.xid::text as xid, a.kind, a.job, a.actor
  from matins.audit a
 where a.id > $1 and a.id <= $2
   and not exists (select from matins.audit_chain c where c.audit_id = a.id)
 order by a.id;
