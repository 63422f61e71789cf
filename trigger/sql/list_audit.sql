-- Lists the audit trail, the latest first, each row with the occurrence that it tells of and its place in the chain (null:
-- not sealed yet). Nulls don't narrow it. One kind is asked for as itself, so that its index gives the order too.
-- $1 job, $2 scheduled_at and $3 variant of an occurrence, $4 kinds, $5 actor, $6 since, $7 until, $8 at most, $9 and $10 the
-- time and the id of a row: only what stands behind it.
select a.id, a.at, a.kind, a.job, a.instance, a.version, a.actor, a.actor_kind, a.reason, a.detail,
       o.scheduled_at, o.variant, c.position
  from matins.audit a
  left join matins.occurrence o on o.id = a.occurrence_id
  left join matins.audit_chain c on c.audit_id = a.id
 where ($1::text is null or a.job = $1)
   and ($2::timestamptz is null or a.occurrence_id = (
           select named.id from matins.occurrence named
            where named.job = $1 and named.scheduled_at = $2 and named.variant = $3))
   and ($4::text[] is null or a.kind = any ($4))
   and ($4::text[] is null or cardinality($4) > 1 or a.kind = ($4)[1])
   and ($5::text is null or a.actor = $5)
   and ($6::timestamptz is null or a.at >= $6)
   and ($7::timestamptz is null or a.at < $7)
   and ($9::timestamptz is null or (a.at, a.id) < ($9, $10::bigint))
 order by a.at desc, a.id desc
 limit $8;
