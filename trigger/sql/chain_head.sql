-- Reads how far the audit trail is sealed, and before which transaction all that can write to it are over at this moment: what
-- still runs in other databases of the server cannot. Never less than was found before; a server that has not come so far
-- is another one. Without a seal, the beginning of the chain.
with last as materialized (
    select * from matins.audit_seal s order by s.number desc limit 1)
, elsewhere as materialized (
    select l.transactionid::text::bigint as xid
      from pg_locks l
      join pg_stat_activity a on a.pid = l.pid
      join pg_database d on d.oid = a.datid
     where l.locktype = 'transactionid' and l.mode = 'ExclusiveLock' and l.granted and d.datname <> current_database())
, running as (
    select min(one.xid::text::bigint) as first
      from pg_snapshot_xip(pg_current_snapshot()) as one (xid)
     where not exists (select from elsewhere where elsewhere.xid = one.xid::text::bigint % 4294967296))
, here as (
    select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as not_begun,
           coalesce(last.through_xid, '0')::text::bigint as through
      from (values (1)) as one
      left join last on true)
select coalesce(last.number, 0) as number, coalesce(last.era, 1) as era, coalesce(last.first_look, true) as first_look,
       last.server, coalesce(last.position, 0) as position, last.hash, coalesce(last.highest_id, 0) as highest_id,
       here.through::text as through_xid, coalesce(last.through_id, 0) as through_id,
       here.through > here.not_begun as goes_back,
       (case when here.through > here.not_begun then coalesce(running.first, here.not_begun)
             else greatest(here.through, coalesce(running.first, here.not_begun)) end)::text as all_over
  from here
 cross join running
  left join last on true;
