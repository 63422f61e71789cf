-- Puts the pseudonym into rows of the audit trail of a range of ids, and gives them as they are now; the sealer is kept away.
-- $1 account, $2 pseudonym, $3 above this id, $4 up to this id.
update matins.audit a
   set reason = matins.redact(a.reason, $1, $2), detail = matins.redact_document(a.detail, $1, $2)
 where a.id > $3 and a.id <= $4
   and (strpos(a.reason, $1) > 0 or strpos(a.detail::text, btrim(to_json($1::text)::text, '"')) > 0)
   and (a.reason, a.detail) is distinct from
       (matins.redact(a.reason, $1, $2), matins.redact_document(a.detail, $1, $2))
returning a.id, a.at, a.xid::text as xid, a.kind, a.job, a.occurrence_id, a.instance, a.version, a.actor, a.actor_kind,
          a.reason, a.detail::text as detail;
