-- Reads the rows of the audit trail that are to be sealed next: those of transactions that are over, in their order. What a
-- transaction that still runs has written is seen once it is over, and nothing before it can come any more. At the first
-- look on a server also those whose transaction this one has never had, which only a dump can have brought.
-- $1 xid and $2 id up to which all is sealed, $3 the first transaction that may still run, $4 at a first look,
-- $5 at most.
with of_here as (
    select a.id, a.at, a.xid::text as xid, a.kind, a.job, a.occurrence_id, a.instance, a.version, a.actor, a.actor_kind,
           a.reason, a.detail::text as detail, a.xid as sorted
      from matins.audit a
     where (a.xid, a.id) > ($1::text::xid8, $2::bigint) and a.xid < $3::text::xid8
       and not exists (select from matins.audit_chain c where c.audit_id = a.id)
     order by a.xid, a.id
     limit $5)
, of_elsewhere as (
    select a.id, a.at, a.xid::text as xid, a.kind, a.job, a.occurrence_id, a.instance, a.version, a.actor, a.actor_kind,
           a.reason, a.detail::text as detail, a.xid as sorted
      from matins.audit a
     where $4::boolean and a.xid >= pg_snapshot_xmax(pg_current_snapshot())
       and not exists (select from matins.audit_chain c where c.audit_id = a.id)
     order by a.xid, a.id
     limit $5)
select unsealed.*
  from (select * from of_here union all select * from of_elsewhere) unsealed
 order by unsealed.sorted, unsealed.id
 limit $5;
