-- Says how far the audit trail is sealed, by its last batch, and what waits for the next, without reading what is sealed: the
-- number of rows, up to $1 of them, and the time of the oldest of these. A batch that chained nothing has no head of its own.
-- Each row of the tail is looked for in the chain by itself: how short the tail is, no statistics tell.
with last as materialized (
    select s.through_xid, s.through_id from matins.audit_seal s order by s.number desc limit 1)
, headed as (
    select s.position, s.hash, s.sealed_at from matins.audit_seal s where s.rows > 0 order by s.number desc limit 1)
, behind as materialized (
    select a.id, a.at
      from matins.audit a
     where (a.xid, a.id) > (coalesce((select last.through_xid from last), '0'), coalesce((select last.through_id from last), 0))
     order by a.xid, a.id
     limit $1)
, tail as (
    select behind.at
      from behind
      left join lateral (
           select true as is_sealed from matins.audit_chain c where c.audit_id = behind.id limit 1) link on true
     where link.is_sealed is null)
select coalesce(headed.position, 0) as position, headed.hash, headed.sealed_at, clock_timestamp() as now,
       (select count(*) from tail) as waiting, (select min(tail.at) from tail) as oldest
  from (values (1)) as one
  left join headed on true;
